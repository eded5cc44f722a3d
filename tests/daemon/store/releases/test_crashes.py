"""kill -9 at every step of a change: what is left is the old state or the new one, and the same again gets there.

The steps are counted, not guessed: every file that Python opens, renames or removes and every process that it starts
(PEP 578 audit events); and every call of git: killed with us before it, in the middle of its refs, after it, or going
on without us.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.core.releases import ReleaseState
from daemon.store.releases import Releases
from tests.conftest import ROOT
from tests.daemon.store.releases import dying
from tests.daemon.store.releases.conftest import git_of
from tests.fakes.daemon import until
from tests.fakes.releases import ACCEPTED, candidate, released, write_weights

#: The head's number, whether it has weights, the number that clients are held at, the jobs that wait for a person.
State = tuple[int, bool, int, list[str]]

OLD: State = (2, True, 1, ["job_3"])
#: What is done (`dying.CHANGES`), and the state after it.
CHANGES: dict[str, State] = {
    "publish": (3, True, 1, []),
    "rollback": (3, True, 3, ["job_3"]),
    "reject": (2, True, 1, []),
    "archive": (0, False, 0, []),
    "propose": (2, True, 1, ["job_3", "job_4"]),
    "gc": OLD,
}


QUICK = ("publish", "reject", "archive")
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CHANGES]


def state(releases: Releases) -> State:
    """Proved, whole, and nothing of it in doubt."""
    standing, pinned = releases.standing("default"), releases.pinned("default")
    assert standing.trouble is None
    head = standing.release
    if head:
        assert releases.files(head)
        assert [row.number for row in releases.list("default")[0]] == list(range(head.number, 0, -1))
    lora = releases.lora(head) if head else None
    jobs = sorted(str(row.job) for row in releases.waiting())
    return head.number if head else 0, lora is not None, pinned.number if pinned else 0, jobs


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two releases with weights, clients held at the first; a candidate that waits, one that was turned down."""
    memory = Path("/dev/shm")
    root = memory / f"reef-crash-{os.getpid()}" if memory.is_dir() else tmp_path_factory.mktemp("crash")
    home = Home(root)
    home.prepare()
    releases = Releases.open(home)
    first = released(releases, "job_1", weights=write_weights(root / "w"))
    releases.pin(first)
    second = released(releases, "job_2", first.id)
    releases.propose(candidate("job_3", second.id), ACCEPTED)
    releases.propose(candidate("job_5", second.id), ACCEPTED, ReleaseState.REJECTED)
    assert state(releases) == OLD
    yield root
    shutil.rmtree(root)


@contextmanager
def copied(before: Path) -> Iterator[Home]:
    root = before.with_name(f"{before.name}-copy")
    shutil.copytree(before, root)
    try:
        yield Home(root)
    finally:
        shutil.rmtree(root)


class Dying:
    """The program `dying`, which does a change in a process that may be killed in it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.daemon.store.releases.dying"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip

    def killed(self, home: Home, name: str, at: int = 0) -> bool:
        """Whether it was, before its step ``at`` or by somebody else."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{home.root}\t{name}\t{at}\t{os.environ['PATH']}\n")
        status = int(self._process.stdout.readline())
        assert status in (0, signal.SIGKILL)
        return status != 0

    def end(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def program() -> Iterator[Dying]:
    running = Dying()
    yield running
    running.end()


def check(home: Home, name: str, what: object, *, killed: bool) -> None:
    after = CHANGES[name]
    releases = Releases.open(home)
    assert state(releases) in ((OLD, after) if killed else (after,)), what
    dying.CHANGES[name](releases)
    assert state(releases) == after, what
    assert git_of(home)("fsck", "--strict", "--no-dangling") == "", what


@pytest.mark.parametrize("name", EACH)
def test_killed_before_any_step(before: Path, program: Dying, name: str) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        with copied(before) as home:
            killed = program.killed(home, name, at)
            check(home, name, at, killed=killed)
    assert at > 20


#: In git's place: at its call AT, HOW says what becomes of it and of the process that called it. ``cut:K``: K of the
#: refs that it was to move have moved, the others are locked; ``lone:K``: only git is killed there, the first time.
GIT = """#!{python} -IS
import os, signal, subprocess, sys
git, counter, at, how = {git!r}, {counter!r}, {at}, {how!r}
def real(*words, **more):
    return subprocess.run([git, *words], **more).returncode
with open(counter, "a") as file:
    file.write("x")
    file.flush()
    call = file.tell()
lone = how.startswith("lone") and sys.argv[1] == "update-ref" and not os.path.exists(counter + ".over")
if call != at and not lone:
    os.execv(git, ["git", *sys.argv[1:]])
given = sys.stdin.buffer.read() if "--batch" not in sys.argv else b""
if how == "after":
    real(*sys.argv[1:], input=given)
if not lone:
    os.kill(os.getppid(), signal.SIGKILL)
if how == "alone":
    real(*sys.argv[1:], input=given)
if ":" in how and sys.argv[1] == "update-ref":
    parts = given.split(b"\\0")[:-1]
    moves = [parts[i:i + 3] for i in range(0, len(parts), 3)]
    for number, (update, new, old) in enumerate(moves):
        if number < int(how[-1]):
            real("update-ref", "--stdin", "-z", input=b"\\0".join([update, new, old, b""]))
        else:
            lock = os.path.join(os.environ["GIT_DIR"], update.decode().partition(" ")[2] + ".lock")
            os.makedirs(os.path.dirname(lock), exist_ok=True)
            open(lock, "x").close()
with open(counter + ".over", "w"):
    pass
if lone:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Where the calls are counted; ``calls.over`` is there once it has done what it was told."""
    (tmp_path / "bin").mkdir()
    return tmp_path / "calls"


@contextmanager
def git_instead(calls: Path, at: int, how: str) -> Iterator[None]:
    wrapper, path = calls.with_name("bin") / "git", os.environ["PATH"]
    calls.write_text("")
    calls.with_suffix(".over").unlink(missing_ok=True)
    told = {"python": sys.executable, "git": shutil.which("git"), "counter": str(calls), "at": at, "how": how}
    wrapper.write_text(GIT.format_map(told))
    wrapper.chmod(0o755)
    os.environ["PATH"] = f"{wrapper.parent}:{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


@pytest.mark.parametrize("how", ["before", "after", "alone", "cut:1", "cut:2"])
@pytest.mark.parametrize("name", EACH)
def test_killed_with_any_call_of_git(before: Path, program: Dying, calls: Path, *, name: str, how: str) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        with copied(before) as home:
            with git_instead(calls, at, how):
                killed = program.killed(home, name)
            if killed:
                until(calls.with_suffix(".over").exists, "git's end", 30)
            check(home, name, (at, how), killed=killed)
    assert at > 2


@pytest.mark.parametrize("name", ["publish", "rollback", "archive"])
def test_where_only_git_is_killed_the_change_is_finished(before: Path, program: Dying, calls: Path, name: str) -> None:
    with copied(before) as home:
        with git_instead(calls, 0, "lone:1"):
            assert not program.killed(home, name)
        assert calls.with_suffix(".over").exists()
        check(home, name, "lone", killed=False)
