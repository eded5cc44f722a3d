"""`reef status`, up and down."""

import os
import signal

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from daemon.core.version import __version__
from reef_cli import lifecycle
from tests.fakes.daemon import start, until
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef
from tests.reef_cli.raw_server import answering, ok

COVERS = ("reef_cli/standing.py",)


def test_it_says_what_runs_where(served: Served, cli: Reef) -> None:
    result = cli("status")
    assert result.code == 0
    assert f"pid {served.daemon.process.pid}" in result.out
    assert f"agents     {served.daemon.url}/v1\n" in result.out
    assert str(served.home.root) in result.out
    assert str(served.home.log) in result.out
    assert "p: ready" in result.out
    assert "(default)" in result.out


def test_it_fits_a_terminal_and_ends_with_the_next_command(served: Served, cli: Reef) -> None:
    lines = cli("status").out.splitlines()
    assert len(lines) <= 24
    assert lines[-1].startswith("next: ")


def test_it_counts_and_shows_the_last_answer(served: Served, cli: Reef) -> None:
    receipt = served.ask("status, please", answer="all is \x1b[31mwell")
    out = cli("status").out
    assert "record" in out
    assert receipt in out
    assert "\x1b" not in out
    assert "next: reef good, or reef bad" in out
    cli("good")
    told = cli("status").out
    assert "next: reef tasks add" in told
    assert "reef evolve" in told.splitlines()[-1]
    served.ask("status, please", answer="a long answer " * 9)
    assert len(next(line for line in cli("status").out.splitlines() if line.startswith("last"))) <= 80


def test_its_json_is_the_daemons_own(served: Served, cli: Reef) -> None:
    told = cli("status", "--json").json()
    assert told["running"] is True
    assert told["pid"] == served.daemon.process.pid
    assert told["url"] == served.daemon.url


def test_down_it_starts_nothing_and_says_why(reef: Reef, reef_home: Home) -> None:
    result = reef("status")
    assert result.code == ExitCode.UNREACHABLE
    assert result.out.startswith("reef is not running: never started\n")
    assert result.out.endswith("next: reef start\n")
    assert not lifecycle.lives(reef_home)


def test_a_killed_daemon_is_told_with_its_pid_and_last_sign_of_life(reef: Reef, reef_home: Home) -> None:
    daemon = start(reef_home)
    pid = daemon.process.pid
    os.kill(pid, signal.SIGKILL)
    daemon.stop()
    until(lambda: not lifecycle.lives(reef_home), "its end")
    told = reef("status", "--json").json()
    assert told["running"] is False
    assert told["reason"] == f"it was killed (pid {pid})"
    assert told["since_ns"] == reef_home.log.stat().st_mtime_ns
    assert "last sign of life" in reef("status").out


def test_a_stopped_daemon_is_not_called_killed(reef: Reef, reef_home: Home) -> None:
    start(reef_home).stop()
    assert reef("status", "--json").json()["reason"] == "it was stopped"


def test_a_daemon_of_another_protocol_is_told_from_what_never_changes(reef: Reef, reef_home: Home) -> None:
    with answering(reef_home.socket, ok(b'{"version": "9.0", "protocol": 99, "pid": 7}')):
        result = reef("status")
    assert result.code == 0
    assert result.out == f"reef 9.0 runs, pid 7; this command is {__version__}\n\nnext: reef restart\n"


def test_a_daemon_that_answers_nonsense_is_an_error_not_down(reef: Reef, reef_home: Home) -> None:
    with answering(reef_home.socket, b"HTTP/1.1 500 x\r\ncontent-length: 4\r\n\r\noops"):
        result = reef("status", "--json")
    assert result.code == ExitCode.FAILED
    assert result.error()["message"] == "the daemon answered 500: oops"
