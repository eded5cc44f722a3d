"""`reef` and `reef tui`: when the dashboard opens and when it says why not; the lines for those who listen."""

import io
import os
import pty
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli.tui import plain
from reef_cli.tui.keys import KEYS
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef, Result

COVERS = ("reef_cli/tui/plain.py",)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """stdin and stdout, as they are while the test runs, count as a terminal's."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)


def test_without_a_terminal_it_says_what_else_there_is(reef: Reef) -> None:
    result = reef("tui", "--json")
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert result.error()["hint"] == "reef status --json, reef traces list --json"
    assert "needs a terminal" in reef("tui").err


@pytest.mark.parametrize("words", [(), ("tui",)])
def test_a_dumb_terminal_is_refused_with_a_hint(
    reef: Reef, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    result = reef(*words)
    assert result.code == ExitCode.USAGE
    assert "TERM=dumb cannot" in result.err
    assert "ACCESSIBLE=1 reef" in result.err


def test_a_mistake_in_the_settings_is_named(reef: Reef, reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("REEF_HOME", str(reef_home.root))
    reef_home.dashboard.write_text("theme: pink\n")
    result = reef("tui")
    assert result.code == ExitCode.USAGE
    assert f"{reef_home.dashboard}: theme: 'pink' is not one of dark, light, ansi, safe" in result.err


def test_lines_for_those_who_listen(
    served: Served, run_reef: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    receipt = served.ask("listen to me", answer="an answer to hear \x1b[2J")
    monkeypatch.setenv("ACCESSIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    said = iter(
        [
            "1",
            f"good {receipt}",
            "list",
            "bad 1",
            "note 'too loud' 1",
            "list",
            "good 7",
            "7000",
            "traces nonsense",
            "'",
            "quit",
        ]
    )
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    result = run_reef(served.home)
    assert result.code == ExitCode.OK
    assert "Trace 1: listen to me. Rating: not rated. Turns: 1. Name: ses_" in result.out
    assert "  an answer to hear \\x1b[2J" in result.out
    assert f"good  {receipt}" in result.out
    assert "Trace 1: listen to me. Rating: good. Turns: 1." in result.out
    assert f"bad  {receipt}" in result.out  # by its number in the list
    assert f"noted  {receipt}" in result.out
    assert "no receipt begins with '7'" in result.err
    assert "there is no trace 7000" in result.err
    assert "error: No such command 'nonsense'" in result.err
    assert not set("┌│└─▸…\x1b") & set(result.out)


def test_the_end_of_input_ends_the_lines(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    from daemon.core.client import Client

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO("help\n"))
        plain.run(Client(served.home.socket), lambda words: None)
    said = capsys.readouterr().out
    assert said.count("Say a trace's number") == 2
    for key in KEYS:  # every action of the dashboard has its command here
        twins = ", ".join(twin.removeprefix("reef ") for twin in key.twins)
        assert f"{twins}: {key.text}." in said or key.twin in ("", "reef --help")


def on_a_pseudo_terminal(home: Home, *words: str, shown: bytes) -> tuple[int, bytes]:
    """Run `reef tui` until it shows something, press `q`; exit code, and all that the terminal got."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ |= {"REEF_HOME": str(home.root), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        os.execv(sys.executable, [sys.executable, "-m", "reef_cli.main", "tui", *words])
    seen = b""
    pressed = False
    try:
        while True:
            seen += os.read(master, 65536)
            if not pressed and shown in seen:
                pressed = bool(os.write(master, b"q"))
    except OSError:  # the other side is closed
        pass
    _, status = os.waitpid(pid, 0)
    os.close(master)
    return os.waitstatus_to_exitcode(status), seen


def test_the_dashboard_opens_on_a_terminal_and_leaves_it_as_it_was(reef_home: Home) -> None:
    """A real pseudo-terminal: alternate screen in, `q`, alternate screen out."""
    code, seen = on_a_pseudo_terminal(reef_home, "--no-mouse", shown=b"the daemon is not running")
    assert code == 0, seen
    assert b"\x1b[?1049h" in seen
    assert b"\x1b[?1049l" in seen
    assert b"\x1b[?1000h" not in seen  # the mouse stays the terminal's
    assert not re.search(rb"\x1b\](?:[012]|52);", seen)  # so do its title and its clipboard


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(reef_home: Home) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.environ |= {"REEF_HOME": str(reef_home.root), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        os.execv(sys.executable, [sys.executable, "-m", "reef_cli.main", "tui"])
    read_until(master, b"the daemon is not running")
    os.write(master, b"\x1a")
    assert b"\x1b[?1049l" in read_until(master, b"\x1b[?1049l")
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(pid, signal.SIGCONT)
    seen = read_until(master, b"the daemon is not running")
    assert b"\x1b[?1049h" in seen
    os.write(master, b"q")
    with pytest.raises(OSError, match=r"\[Errno"):  # the other side closes once the program has ended
        read_until(master, b"never shown")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(master)


def read_until(master: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        seen += os.read(master, 65536)
    return seen


def test_a_recording_of_the_real_daemon_is_played_without_it(served: Served, tmp_path: Path) -> None:
    served.ask("what is to be recorded?", answer="this is")
    file = tmp_path / "demo.jsonl"
    code, seen = on_a_pseudo_terminal(served.home, "--record", str(file), shown=b"what is to be recorded?")
    assert code == 0, seen
    assert b"kB in " in seen
    code, seen = on_a_pseudo_terminal(
        Home(tmp_path / "nothing"), "--replay", str(file), shown=b"what is to be recorded?"
    )
    assert code == 0, seen
    assert b"recording of 20" in seen
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--record", "a", "--replay", "b"), "--record and --replay do not go together"),
        (("--speed", "2"), "--speed is of a recording"),
        (("--replay", "a", "--speed", "0"), "--speed 0 is not a number between 0.1 and 100"),
        (("--replay", "a", "--speed", "nan"), "--speed nan is not a number between 0.1 and 100"),
        (("--replay", "a", "--speed", "fast"), "--speed fast is not a number between 0.1 and 100"),
        (("--replay", "/nowhere/a"), "cannot read /nowhere/a: No such file or directory"),
        (("--record", "/dev/null"), "/dev/null is there already"),
    ],
)
def test_recordings_that_cannot_be(
    reef: Reef, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    result = reef("tui", *words)
    assert result.code == ExitCode.USAGE
    assert message in result.err
    monkeypatch.setenv("ACCESSIBLE", "1")
    if "--replay" in words:
        assert "error" in reef("tui", *words).err
