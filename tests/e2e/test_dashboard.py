"""The dashboard as a person has it: the real program in tmux, on the real daemon, with a trace that was recorded."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
from tests.fakes.provider import Turn, running_provider


class Tmux:
    """One window, 80 by 24, in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")

    def run(self, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            env=environment, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", "reef")

    def shows(self, text: str) -> str:
        until(lambda: text in self.screen(), f"{text!r} on the terminal", 40)
        return self.screen()

    def line(self, text: str) -> str:
        return next((line for line in self.screen().splitlines() if text in line), "")

    def press(self, *keys: str) -> None:
        self.run("send-keys", "-t", "reef", *keys)


@pytest.fixture
def daemon(reef_home: Home) -> Iterator[RunningDaemon]:
    with running_provider() as provider:
        provider.turns = (Turn("the answer 漢字 to rate"),)
        with running_daemon(reef_home, provider.config()) as running:
            yield running


@pytest.fixture
def tmux(reef_home: Home) -> Iterator[Tmux]:
    window = Tmux(reef_home.root)
    yield window
    window.run("kill-server")


def ask(daemon: RunningDaemon, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    status, headers, _ = daemon.post("/v1/chat/completions", body)
    assert status == 200
    return headers["x-reef-agent-record-id"]


def opened(tmux: Tmux, home: Home, name: str = "reef") -> None:
    command = shlex.join(
        ["env", f"REEF_HOME={home.root}", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "reef_cli.main"]
    )
    tmux.run("new-session", "-d", "-s", name, "-x", "80", "-y", "24", f"{command}; echo left with $?; sleep 60")


def test_a_trace_is_rated_from_the_terminal(daemon: RunningDaemon, tmux: Tmux) -> None:
    receipt = ask(daemon, "what is to be rated?")
    opened(tmux, daemon.home)
    tmux.shows("what is to be rated?")
    assert tmux.line("what is to be rated?").startswith("> ")
    tmux.press("Enter")
    tmux.shows("the answer 漢字 to rate")
    tmux.press("+")
    tmux.shows("  + good")
    tmux.press("c")
    tmux.shows("Note on the answer")
    tmux.press("-l", "use uv, q and z")
    tmux.press("Enter")
    tmux.shows("note")
    until(lambda: len(daemon.get(f"/reef/records/{receipt}")["reports"]) == 2, "the note in the store")
    reports = daemon.get(f"/reef/records/{receipt}")["reports"]
    assert [(one["score"], one["feedback"]) for one in reports] == [(1.0, None), (None, "use uv, q and z")]
    tmux.press("z")
    tmux.shows("(undone)")
    tmux.press("Escape")
    until(lambda: "+ good" in tmux.line("what is to be rated?"), "the rating in the list")
    tmux.press("q")
    tmux.shows("left with 0")


def test_neither_a_killed_daemon_nor_a_killed_dashboard_loses_feedback(reef_home: Home, tmux: Tmux) -> None:
    with running_provider() as provider:
        with running_daemon(reef_home, provider.config()) as daemon:
            receipt = ask(daemon, "what is not to be lost?")
            opened(tmux, reef_home)
            tmux.shows("> ")
            daemon.kill()
            tmux.shows("! the daemon")
            tmux.press("-")
            tmux.shows("- bad …")
            tmux.press("c")
            tmux.shows("Note on")
            tmux.press("-l", "kept through both")
            tmux.press("Enter")
            tmux.shows("note …")
            until(lambda: len(list(reef_home.outbox.glob("*.json"))) == 2, "both on disk")
            (dashboard,) = children(int(tmux.run("display-message", "-p", "-t", "reef", "#{pane_pid}")))
            os.kill(dashboard, signal.SIGKILL)
            tmux.shows("left with 137")
        with running_daemon(reef_home, provider.config()) as daemon:
            tmux.run("kill-session", "-t", "reef")
            opened(tmux, reef_home)
            until(lambda: not list(reef_home.outbox.glob("*.json")), "both sent")
            reports = daemon.get(f"/reef/records/{receipt}")["reports"]
            assert [(one["score"], one["feedback"]) for one in reports] == [(0.0, None), (None, "kept through both")]
            tmux.shows("- bad")


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
