"""What a wrapper leaves as it is, for every adapter there is: words, terminal, files, signals and how it ended.

A program stands in each agent's place that tells what it got, to a file since all else may be closed. It is run
plainly and wrapped: what it tells must be the same.
"""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapters import agent
from adapters.agent import ModeName
from adapters.session import Place
from daemon.core.locks import locked
from daemon.core.paths import Home
from tests.fakes import agents, chain
from tests.fakes.daemon import RunningDaemon, running_daemon, until

_HERE = Home(Path("/nowhere"))
EVERY = [(name, mode) for name in agent.names(_HERE) for mode in agent.load(_HERE, name).modes]
ODD = [
    b"", b"a b", b"two\nlines", b"--", b"-x", b"--json", b"--=", b"-", b"\xff\xfe", "\u00fc\U0001f980".encode(),
    b"$HOME `id` \\ \"'", b"*", b"\t", b"-c", b"import os", b"\x1b[31m",
]  # fmt: skip
_START = """#!/bin/sh
exec 9>"$TELL.signals"
grep -E '^Sig(Ign|Blk)' /proc/self/status >&9
exec 9>&-
exec @PYTHON@ @PROGRAM@ "$@"
"""
_PROGRAM = """
import json, os, signal, sys
def kind(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return None
there = {number: kind(number) for number in range(3)}
read = None
if "READS" in os.environ:
    read = b""
    while chunk := os.read(0, 65536):
        read += chunk
with open(os.environ["TELL"] + ".made", "w") as file:
    json.dump({
        "arguments": [os.fsencode(word).hex() for word in sys.argv[1:]],
        "folder": os.getcwdb().hex(),
        "files": there,
        "read": read and read.hex(),
        "environment": {name: value for name, value in os.environ.items()},
        "pid": os.getpid(), "group": os.getpgrp(), "session": os.getsid(0),
    }, file)
os.rename(os.environ["TELL"] + ".made", os.environ["TELL"])
if "DIES" in os.environ:
    if os.environ["DIES"] == "2":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), int(os.environ["DIES"]))
while "STAYS" in os.environ:
    signal.pause()
sys.exit(int(os.environ.get("EXIT", "0")))
"""


class Told(NamedTuple):
    code: int
    said: dict[str, Any]
    signals: str
    err: str


class Stand:
    """Each agent's command with the program behind it. ``plain`` is the program alone."""

    def __init__(self, daemon: RunningDaemon, folder: Path) -> None:
        self.home, self.folder, self.count = daemon.home, folder, 0
        program = folder / "program"
        program.with_suffix(".py").write_text(_PROGRAM)
        python = f"'{sys.executable}'"
        text = _START.replace("@PYTHON@", python).replace("@PROGRAM@", f"'{program.with_suffix('.py')}'")
        program.write_text(text)
        program.chmod(0o700)
        self.plain = str(program)

    def command(self, name: str, mode: ModeName) -> str:
        return agents.wrap(self.home, name, [self.plain], mode=mode)

    def start(self, command: str, *words: bytes, **options: Any) -> "tuple[subprocess.Popen[bytes], Path]":
        self.count += 1
        tell = self.folder / f"told-{self.count}"
        names = ("EXIT", "DIES", "READS", "STAYS")
        more: dict[str, str] = {name: options.pop(name) for name in names if name in options}
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        environment: dict[str, str] = {**os.environ, **more, "TELL": str(tell)}
        started: subprocess.Popen[bytes] = subprocess.Popen([os.fsencode(command), *words], env=environment, **given)
        return started, tell

    def run(self, command: str, *words: bytes, data: bytes | None = None, **options: Any) -> Told:
        started, tell = self.start(command, *words, **options)
        _, err = started.communicate(data, timeout=120)
        said = json.loads(tell.read_text()) if tell.exists() else {}
        told = tell.with_name(f"{tell.name}.signals")
        return Told(started.returncode, said, told.read_text() if told.exists() else "", (err or b"").decode())


@pytest.fixture(scope="module")
def stand(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with running_daemon(module_home) as daemon:
        chain.publish(module_home)
        yield Stand(daemon, tmp_path_factory.mktemp("stand"))


@pytest.fixture
def pi(stand: Stand) -> str:
    return stand.command("pi", "isolated")


@pytest.fixture
def odd_folder(tmp_path: Path) -> bytes:
    """Its name is in no encoding that a person uses today."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9 $HOME"
    os.mkdir(folder)  # noqa: PTH102
    return folder


@pytest.mark.parametrize(("name", "mode"), EVERY)
def test_words_signals_and_exit_codes_are_the_agents(
    stand: Stand, odd_folder: bytes, name: str, mode: ModeName
) -> None:
    command = stand.command(name, mode)
    stand.run(command)  # the first start on a release tells what of it this agent does not take
    plain = stand.run(stand.plain, *ODD, cwd=odd_folder, EXIT="77")
    seen = stand.run(command, *ODD, cwd=odd_folder, EXIT="77")
    assert (seen.code, plain.code, seen.err) == (77, 77, "")
    assert plain.said["arguments"] == [word.hex() for word in ODD]
    assert seen.said["arguments"][-len(ODD) :] == plain.said["arguments"]
    assert (seen.said["folder"], seen.signals) == (plain.said["folder"], plain.signals)
    for ending in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        if (name, mode) == ("pi", "isolated") or ending == signal.SIGTERM:
            assert stand.run(command, DIES=str(int(ending))).code == -ending


def test_no_words_at_all(stand: Stand, pi: str) -> None:
    before = stand.run(pi).said["arguments"]
    assert stand.run(pi, b"x").said["arguments"] == [*before, b"x".hex()]


def test_what_is_piped_in_arrives(stand: Stand, pi: str) -> None:
    data = bytes(range(256)) * 1000
    seen = stand.run(pi, data=data, stdin=subprocess.PIPE, READS="1")
    assert (seen.code, seen.said["read"]) == (0, data.hex())


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_what_is_closed_stays_closed(stand: Stand, pi: str, closed: tuple[int, ...]) -> None:
    """A file of the wrapper's in the place of one of these would be read, or written over, by the agent."""
    shut = " ".join(f"{number}>&-" if number else "0<&-" for number in closed)

    def run(command: str) -> Told:
        return stand.run("/bin/sh", b"-c", f'exec "$0" x {shut}'.encode(), os.fsencode(command))

    plain, seen = run(stand.plain), run(pi)
    assert (plain.code, seen.code) == (0, 0)
    assert [plain.said["files"][str(number)] for number in closed] == [None] * len(closed)
    assert [seen.said["files"][str(number)] for number in closed] == [None] * len(closed)
    assert (seen.signals, seen.err) == (plain.signals, "")


def test_it_is_told_nothing_where_nobody_can_be_asked(stand: Stand, pi: str) -> None:
    """With stdin and stderr closed, a policy that asks, and a newer release."""
    place = Place(stand.home.agents / "pi")
    place.install.write_text(json.dumps({**json.loads(place.install.read_text()), "upgrade": "ask"}))
    assert stand.run(pi).code == 0
    chain.publish(stand.home, "job_asked", {"rules.md": "More.\n"})
    assert stand.run("/bin/sh", b"-c", b'exec "$0" x 0<&- 2>&-', os.fsencode(pi)).code == 0


def test_nobody_reads_its_warnings(stand: Stand, pi: str) -> None:
    """stderr is a pipe whose reader has gone: the notice is lost, the agent starts."""
    place = Place(stand.home.agents / "pi")
    known = place.active.read_text() if place.active.exists() else ""
    place.active.write_text(known.replace('"number": 1', '"number": 99'))  # it will say that r1 is a step back
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert stand.run(pi, EXIT="5", stderr=writer).code == 5
    finally:
        os.close(writer)
        place.active.write_text(known)


def test_signals_that_are_ignored_stay_so(stand: Stand, pi: str) -> None:
    words = (b"-c", b"trap '' INT HUP; exec \"$0\"")
    plain = stand.run("/bin/sh", *words, os.fsencode(stand.plain))
    seen = stand.run("/bin/sh", *words, os.fsencode(pi))
    assert plain.signals != stand.run(stand.plain).signals
    assert seen.signals == plain.signals


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_agent_has_begun_ends_it_too(stand: Stand, pi: str, ending: signal.Signals) -> None:
    """The start is held at its lock: by then most of the wrapper's time is over."""
    place = Place(stand.home.agents / "pi")
    with locked(place.root / "turn"):
        # What started these tests may ignore it, as nohup does.
        started, tell = stand.start(pi, preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL))
        until(lambda: _waits_for_a_lock(started.pid), "it waits for its turn")
        started.send_signal(ending)
        _, err = started.communicate(timeout=60)
    assert (started.returncode, err, tell.exists()) == (-ending, b"", False)
    assert stand.run(pi).code == 0


def _waits_for_a_lock(pid: int) -> bool:
    return any("->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.mark.parametrize("held", [True, False], ids=["before the agent", "in the agent"])
def test_it_is_stopped_and_goes_on(stand: Stand, pi: str, held: bool) -> None:
    place = Place(stand.home.agents / "pi")

    def stopped_and_on(ready: Any) -> None:
        until(ready, "it is where it is to be stopped")
        started.send_signal(signal.SIGTSTP)
        until(lambda: _state(started.pid) == "T", "it is stopped")
        started.send_signal(signal.SIGCONT)
        until(lambda: _state(started.pid) != "T", "it goes on")

    # In a group of its own below this process: a group that nobody waits for is not stopped by a terminal's signal.
    if held:
        with locked(place.root / "turn"):
            started, tell = stand.start(pi, EXIT="3", process_group=0)
            stopped_and_on(lambda: _waits_for_a_lock(started.pid))
        started.communicate(timeout=60)
        assert started.returncode == 3
    else:
        started, tell = stand.start(pi, STAYS="1", process_group=0)
        stopped_and_on(tell.exists)
        said = json.loads(tell.read_text())
        assert (said["pid"], said["group"]) == (started.pid, started.pid)
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)
        assert started.returncode in (-signal.SIGINT, 1)  # Python's own way to end by it


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_terminal_is_the_agents(stand: Stand, pi: str) -> None:
    """Ctrl-C there goes to its group, of which the agent is the leader as it would be without Reef."""
    tell = stand.folder / "in-a-terminal"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(pi, [pi, "x"], {**os.environ, "TELL": str(tell), "STAYS": "1"})
    until(tell.exists, "it runs")
    said = json.loads(tell.read_text())
    assert (said["pid"], said["group"], said["session"]) == (pid, pid, pid)
    assert len({said["files"][number] for number in "012"}) == 1
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGINT


def test_nothing_of_the_wrapper_stays_open_but_the_run_s_lock(stand: Stand, pi: str) -> None:
    started, tell = stand.start(pi, STAYS="1")
    until(tell.exists, "it runs")
    folder = Path(f"/proc/{started.pid}/fd")
    there = {int(path.name): os.readlink(path) for path in folder.iterdir()}  # noqa: PTH115
    started.kill()
    started.communicate()
    ours = {number: name for number, name in there.items() if str(stand.home.root) in name}
    assert [Path(name).name for name in ours.values()] == ["lock"]
    assert min(ours) > 2
    assert set(there) - set(ours) <= {0, 1, 2}
