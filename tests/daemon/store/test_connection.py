"""Connections and what their errors mean."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.store.connection import Pool, explain, is_locked, is_outside, open_writer


def failure(code: int, text: str = "some words") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_FULL, "is full"),
        (sqlite3.SQLITE_BUSY, "locked"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "locked"),
        (sqlite3.SQLITE_CORRUPT, "damaged"),
        (sqlite3.SQLITE_NOTADB, "damaged"),
        (sqlite3.SQLITE_IOERR_WRITE, "cannot use"),
        (sqlite3.SQLITE_READONLY, "read-only"),
    ],
)
def test_an_error_says_what_happened(tmp_path: Path, code: int, said: str) -> None:
    explained = explain(failure(code), tmp_path / "reef.db")
    assert said in explained.message
    assert str(tmp_path) in explained.message
    assert explained.hint
    assert is_outside(failure(code))


def test_a_full_disk_is_never_called_damage(tmp_path: Path) -> None:
    """BUGS B161: riffle#589."""
    assert "damaged" not in explain(failure(sqlite3.SQLITE_FULL), tmp_path / "reef.db").message


def test_a_file_system_that_became_read_only_is_called_so() -> None:
    """SQLite only says that a write failed; the kernel mounts a disk so after an error."""
    mounts = (Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines())
    sealed = next((one for one in mounts if one.is_dir() and os.statvfs(one).f_flag & os.ST_RDONLY), None)
    if sealed is None:
        pytest.skip("every file system here can be written")
    assert "is read-only" in explain(failure(sqlite3.SQLITE_IOERR_WRITE), sealed / "reef.db").message


def test_only_locks_are_worth_another_try() -> None:
    assert is_locked(failure(sqlite3.SQLITE_BUSY))
    assert not is_locked(failure(sqlite3.SQLITE_FULL))
    assert not is_outside(failure(sqlite3.SQLITE_CONSTRAINT_UNIQUE))
    assert not is_outside(sqlite3.ProgrammingError("no code at all"))


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_is_sqlites(tmp_path: Path, durability: str, level: int) -> None:
    db = open_writer(tmp_path / "x.db", durability)  # type: ignore[arg-type]
    assert db.execute("PRAGMA synchronous").fetchone() == (level,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    db.close()


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.touch(mode=0o644)
    open_writer(file, "full").close()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    db = open_writer(tmp_path / "a file with ? and %.db", "normal")
    db.execute("CREATE TABLE t (x)")
    db.close()
    return Pool(tmp_path / "a file with ? and %.db")


def test_a_reader_cannot_write(pool: Pool) -> None:
    with pytest.raises(StoreError, match="read-only"), pool.reader() as reader:
        reader.db.execute("INSERT INTO t VALUES (1)")
    pool.close()


def test_a_reader_is_lent_to_one_thread_at_a_time(pool: Pool) -> None:
    seen: list[int] = []
    together = threading.Barrier(6)

    def read() -> None:
        with pool.reader() as reader:
            seen.append(id(reader))
            together.wait(10)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(seen)) == 6
    with pool.reader() as reader:
        assert id(reader) in seen
    pool.close()


def test_a_closed_pool_lends_nothing(pool: Pool) -> None:
    with pool.reader():
        pool.close()
    with pytest.raises(StoreError, match="closed"), pool.reader():
        pass
