"""Several processes that publish, some of them killed: one linear chain, nothing acknowledged is lost."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.core.paths import Home
from daemon.core.releases import Release
from daemon.store.releases import Releases
from tests.conftest import ROOT
from tests.daemon.store.releases.conftest import Git, git_of
from tests.fakes.releases import ACCEPTED, candidate, released, write_weights


class Publisher:
    """One process after another, until ``count`` releases are acknowledged."""

    def __init__(self, home: Home, name: str, count: int) -> None:
        self.acknowledged: dict[int, str] = {}
        self.kills = 0
        self._words = [sys.executable, "-m", "tests.daemon.store.releases.publishing", str(home.root), name]
        self._count = count
        self._output = b""
        self._start()

    def _start(self) -> None:
        first = max(self.acknowledged, default=-1) + 1
        self._process = subprocess.Popen(
            [*self._words, str(first), str(self._count)], cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def step(self) -> bool:
        """Take in what was said; whether all is done."""
        assert self._process.stdout is not None
        ended = self._process.poll() is not None
        self._output += self._process.stdout.read() or b""
        *lines, self._output = self._output.split(b"\n")
        for line in lines:
            number, id = line.decode().split()
            self.acknowledged[int(number)] = id
        if ended:
            self._process.stdout.close()
            if len(self.acknowledged) == self._count:
                return True
            assert self._process.returncode == -signal.SIGKILL
            self._output = b""
            self._start()
        return False

    def kill(self, *, with_git: bool) -> None:
        """kill -9: alone, so that its git goes on, or with it."""
        with suppress(ProcessLookupError):
            (os.killpg if with_git else os.kill)(self._process.pid, signal.SIGKILL)
            self.kills += 1


#: Seconds in which at least one release is told of.
PATIENCE = 100.0


def publish(
    home: Home, workers: int, each: int, a_kill_each: int = 0, *, beside: Callable[[], object] = lambda: None
) -> list[Publisher]:
    """``a_kill_each``: so many releases told of, on average, between two kills; 0: none. ``beside``: done again and
    again meanwhile.
    """
    publishers = [Publisher(home, f"w{number}", each) for number in range(workers)]
    waiting = list(publishers)
    chance = random.Random(7)
    due = chance.randint(1, 2 * a_kill_each) if a_kill_each else workers * each + 1
    told, since = 0, time.monotonic()
    while waiting := [publisher for publisher in waiting if not publisher.step()]:
        if (now := sum(len(publisher.acknowledged) for publisher in publishers)) > told:
            told, since = now, time.monotonic()
        assert time.monotonic() < since + PATIENCE, "publishing stands still"
        if told >= due:
            due += chance.randint(1, 2 * a_kill_each)
            time.sleep(chance.random() * 0.1)
            chance.choice(waiting).kill(with_git=chance.random() < 0.5)
        time.sleep(0.02)
        beside()
    return publishers


def check(home: Home, publishers: list[Publisher]) -> None:
    releases, git = Releases.open(home), git_of(home)
    rows = []
    before = None
    while True:
        page, before = releases.list("default", 1000, before)
        rows += page
        if before is None:
            break
    rows.reverse()
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.parent for row in rows] == ["base", *(row.id for row in rows[:-1])]
    jobs = [row.job for row in rows]
    assert len(set(jobs)) == len(jobs), "a job was released twice"
    acknowledged = {id for publisher in publishers for id in publisher.acknowledged.values()}
    assert acknowledged <= {row.id for row in rows}, "an acknowledged release is lost"
    assert releases.standing("default").trouble is None
    assert git("rev-list", "--count", "--min-parents=2", "refs/reef/default") == "0"
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert int(git("rev-list", "--count", "refs/reef/default")) == len(rows)
    check_signatures(home, rows)


def check_signatures(home: Home, rows: list[Release], many: int = 40) -> None:
    """Ours are proved by `Releases.list` on every commit; git's and ssh-keygen's word on some of them."""
    git, allowed = git_of(home), home.release_key.with_name(f"{home.release_key.name}.allowed")
    some = random.Random(7).sample(rows, min(many, len(rows)))
    git("verify-commit", *(str(row.commit) for row in some))
    words = ("ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "reef", "-n", "reef-release", "-s")
    for row in some:
        signature = home.run / "signature"
        signature.write_text(git("show", f"{row.commit}:release.json.sig") + "\n")
        manifest = git("show", f"{row.commit}:release.json") + "\n"
        subprocess.run([*words, str(signature)], input=manifest.encode(), check=True, capture_output=True)


def test_four_processes_publish_one_chain(memory_home: Home) -> None:
    publishers = publish(memory_home, 4, 25)
    check(memory_home, publishers)


def test_killed_processes_lose_nothing_and_stop_nobody(memory_home: Home) -> None:
    """BUGS B207: kill -9 in the middle of whatever it was."""
    publishers = publish(memory_home, 3, 15, a_kill_each=5)
    assert sum(publisher.kills for publisher in publishers) >= 1
    check(memory_home, publishers)


@pytest.mark.slow
def test_a_thousand_releases_by_four_processes_under_fire(memory_home: Home) -> None:
    publishers = publish(memory_home, 4, 250, a_kill_each=30)
    assert sum(publisher.kills for publisher in publishers) >= 10
    check(memory_home, publishers)


@pytest.mark.slow
@pytest.mark.skipif("REEF_SOAK" not in os.environ, reason="REEF_SOAK=10000 publishes so many: a quarter of an hour")
def test_a_soak_of_eight_processes_under_fire(memory_home: Home) -> None:
    count = int(os.environ["REEF_SOAK"])
    began = time.monotonic()
    publishers = publish(memory_home, 8, count // 8, a_kill_each=12)
    kills, seconds = sum(publisher.kills for publisher in publishers), time.monotonic() - began
    print(f"{count} releases by 8 processes, {kills} kills, {seconds:.0f} s")
    assert kills >= count // 50
    check(memory_home, publishers)


def test_a_lock_that_a_killed_git_left_is_swept(releases: Releases, git: Git) -> None:
    """BUGS B207."""
    first = released(releases, "job_1")
    for name in ("refs/reef/default.lock", "packed-refs.lock", "refs/reef-candidates/job_2.lock"):
        (releases.path / name).touch()
    second = released(releases, "job_2", first.id)
    assert second.number == 2
    git("pack-refs", "--all")
    assert releases.head("default") == second


def test_packing_moves_refs_and_breaks_nothing(releases: Releases, git: Git) -> None:
    first = released(releases, "job_1")
    waits = releases.propose(candidate("job_2", first.id), ACCEPTED)
    git("gc", "--quiet")
    assert not (releases.path / "refs/reef/default").exists()
    assert releases.head("default") == first
    second = releases.publish(waits, first.id)
    assert (releases.head("default"), releases.files(first)["rules.md"]) == (second, "- rule of job_1\n")


@pytest.mark.parametrize("end", ["", "[core"])
def test_a_persons_git_configuration_and_hooks_do_not_run(
    reef_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """BUGS B209: nor is it written, nor so much as read: another program may be writing it just now."""
    hook = tmp_path / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\necho ran >>{tmp_path}/ran\nexit 1\n")
    hook.chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {hook.parent}\n[commit]\n\tgpgSign = true\n{end}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    releases = Releases.open(reef_home)
    inside = releases.path / "hooks"
    inside.mkdir()
    (inside / hook.name).write_bytes(hook.read_bytes())
    (inside / hook.name).chmod(0o755)
    first = released(releases, "job_1")
    second = released(releases, "job_2", first.id)
    assert releases.diff("default", second.id)
    assert len(releases.list("default")[0]) == 2
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / ".gitconfig").read_text().endswith(f"true\n{end}")


@contextmanager
def full_disk(bytes_left: int) -> Iterator[None]:
    """No file may grow beyond that: what a write meets is the same as on a full disk, an error halfway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("left", [0, 20, 45, 300])
def test_a_full_disk_leaves_the_chain_whole(releases: Releases, git: Git, left: int) -> None:
    """45: the objects' first one fits, or only the ref's own file does not."""
    first = released(releases, "job_1")
    waits = releases.propose(candidate("job_2", first.id), ACCEPTED)
    with full_disk(left), pytest.raises(StoreError):
        releases.publish(waits, first.id)
    assert releases.standing("default") == (first, None)
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert not list(releases.path.rglob("tmp_obj_*"))
    assert releases.publish(waits, first.id).number == 2


def test_weights_that_do_not_fit_are_an_error_and_leave_nothing(releases: Releases, tmp_path: Path) -> None:
    weights = write_weights(tmp_path, size=2_000_000)
    with full_disk(1_000_000), pytest.raises(StoreError, match="cannot write"):
        releases.propose(candidate("job_1", weights=weights), ACCEPTED)
    assert [path for path in (releases.path / "lfs").rglob("*") if path.is_file()] == []
    assert released(releases, "job_1", weights=weights).weights is not None
