"""What was acknowledged is on disk; a lock or a full disk fails what waits and nothing more."""

import random
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.core.records import Transcript
from daemon.store import writer
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, exchange, record, submit, system, transcript, user


def killed_at_random(path: Path, name: str, delay: float) -> list[str]:
    """Run the storing program, kill -9 it, return what it had acknowledged."""
    command = [sys.executable, "-m", "tests.daemon.store.crash", str(path), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        threading.Timer(delay, process.kill).start()
        return process.stdout.read().split("\n")[:-1]  # the last line may be torn


@pytest.mark.parametrize("rounds", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_kill_9_loses_nothing_that_was_acknowledged(path: Path, rounds: int) -> None:
    noise, acknowledged = random.Random(rounds), []
    for number in range(rounds):
        acknowledged += killed_at_random(path, f"run {number}", noise.uniform(0.02, 0.3))
    assert acknowledged
    store = Store.open(path)
    for receipt in acknowledged:
        assert store.record(receipt).receipt == receipt
    assert store.verify() == []
    store.close()


def test_what_waits_goes_into_one_transaction(store: Store) -> None:
    commits: list[int] = []
    store.on_commit = lambda appended: commits.append(len(appended))
    gate = threading.Event()
    made = transcript([user("first")])

    def wait() -> Transcript:
        gate.wait(10)
        return made

    first = store.append(exchange(made), wait)
    rest = [submit(store, transcript([user(f"q{n}")])) for n in range(100)]
    gate.set()
    for future in [first, *rest]:
        future.result(20)
    assert sum(commits) == 101
    assert len(commits) <= 3


def test_appending_never_waits(store: Store, path: Path) -> None:
    """Not even while another process holds the write lock."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    future = submit(store, transcript([user("hi")]))
    assert time.monotonic() - begin < writer._PATIENCE_SECONDS  # after which it fails
    assert not future.done()
    other.execute("ROLLBACK")
    assert future.result(20).seq == 1
    other.close()


def test_a_lock_that_stays_fails_what_waits_and_nothing_more(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PATIENCE_SECONDS", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        record(store, transcript([user("while it is locked")]))
    other.execute("ROLLBACK")
    other.close()
    assert record(store, transcript([user("after")])).seq == 1
    assert store.verify() == []


def test_what_was_remembered_of_a_failed_batch_is_forgotten(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger breaks the second record of a session after its message was written; the third builds on the first."""
    talk = Conversation(store)
    talk.turn("q0", agent="pi")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("CREATE TRIGGER broken BEFORE UPDATE ON session BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(StoreError, match="no"):
        talk.turn("q1", agent="a new name", engine="another new name")
    db.execute("DROP TRIGGER broken")
    appended = talk.turn("q2", agent="a newer name", engine="the newest name")
    assert store.record(appended.receipt).engine == "the newest name"
    assert store.verify() == []
    db.close()


@contextmanager
def no_space(path: Path) -> Iterator[None]:
    """Files can't grow any more: this process's limit on file size, as a full disk for SQLite's writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(file.stat().st_size for file in path.parent.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_when_writing_fails_reading_goes_on_and_space_heals_it(store: Store, path: Path) -> None:
    kept = record(store, transcript([user("before")]))
    noise = random.Random(1)
    with no_space(path):
        failed = 0
        for number in range(40):
            with suppress(StoreError):
                record(store, transcript([system(noise.randbytes(20_000).hex()), user(f"q{number}")]))
                continue
            failed += 1
        assert failed > 0
        assert store.record(kept.receipt).preview == "ok"
    assert record(store, transcript([user("after")])).seq > kept.seq
    assert store.verify() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An 8 MB file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def write_until_it_fails(store: Store) -> None:
    noise = random.Random(1)
    for _ in range(100):
        record(store, transcript([system(noise.randbytes(50_000).hex())]))


def test_a_full_disk_is_called_full(small_disk: Path) -> None:
    store = Store.open(small_disk / "store" / "reef.db")
    kept = record(store, transcript([user("before")]))
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 65536):
            pass
    with pytest.raises(StoreError, match=r"disk of .* is full"):
        write_until_it_fails(store)
    assert store.record(kept.receipt).preview == "ok"
    filler.unlink()
    record(store, transcript([user("after")]))
    assert store.verify() == []
    store.close()


def test_the_log_stays_bounded_under_load(store: Store, path: Path) -> None:
    noise = random.Random(4)
    wal = path.with_name("reef.db-wal")
    largest = 0
    for _ in range(20):
        futures = [submit(store, transcript([user(noise.randbytes(50_000).hex())])) for _ in range(30)]
        for future in futures:
            future.result(30)
        largest = max(largest, wal.stat().st_size)
    assert largest < 64 << 20


def test_seven_processes_do_not_starve_a_writer(store: Store, path: Path) -> None:
    """Six others write to the same file now and then (hermes-agent#3385)."""
    stop = threading.Event()

    def disturb() -> None:
        db = sqlite3.connect(path, isolation_level=None, timeout=10)
        db.execute("CREATE TABLE IF NOT EXISTS other (x)")
        while not stop.is_set():
            with suppress(sqlite3.OperationalError):
                db.execute("INSERT INTO other VALUES (1)")
            stop.wait(0.02)
        db.close()

    threads = [threading.Thread(target=disturb) for _ in range(6)]
    for thread in threads:
        thread.start()
    taken = []
    for number in range(60):
        begin = time.monotonic()
        record(store, transcript([user(f"q{number}")]))
        taken.append(time.monotonic() - begin)
    stop.set()
    for thread in threads:
        thread.join()
    assert sorted(taken)[int(len(taken) * 0.9)] < 1.0  # a lock that is not got fails after five
