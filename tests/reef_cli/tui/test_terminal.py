"""What a terminal may send: no byte ends the dashboard, no paste presses a key; it leaves the terminal as it was."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import pytest
from textual import events

from daemon.core.paths import Home
from reef_cli.tui import terminal
from reef_cli.tui.terminal import Keyboard

_EMPTY = b"the daemon is not running"
_ALTERNATE_OUT = b"\x1b[?1049l"


def read(*chunks: str) -> list[str]:
    """Keys by name; what was pasted, quoted."""
    keyboard = Keyboard()
    found = [event for chunk in chunks for event in keyboard.feed(chunk)]
    return [
        repr(event.text) if isinstance(event, events.Paste) else event.key
        for event in found
        if isinstance(event, events.Key | events.Paste)
    ]


@pytest.mark.parametrize("size", [1, 2, 5, 7, 1000])
def test_a_paste_presses_no_key_wherever_it_is_cut(size: int) -> None:
    text = (
        "a\x1b[200~x\x1b[31mqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq\x1b\x1b[20\x1b[201~b\x1b[201~\x1b[200~\x1b[201~c"
    )
    found = read(*(text[n : n + size] for n in range(0, len(text), size)))
    assert found == ["a", repr(f"x\\x1b[31m{'q' * 40}\\x1b\\x1b[20"), "b", "''", "c"]


def test_a_paste_that_has_lost_its_end_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(terminal, "monotonic", lambda: now[0])
    keyboard = Keyboard()
    assert list(keyboard.feed("\x1b[200~half\x1b[2")) == []
    assert list(keyboard.tick()) == []
    now[0] += 2
    assert [event.text for event in keyboard.tick() if isinstance(event, events.Paste)] == ["half"]
    assert [event.key for event in keyboard.feed("q") if isinstance(event, events.Key)] == ["q"]


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[99999999999999999999~",
        "\x1b[1114112u",
        "\x1b[55296;1u",
        "\x1b[97;;55296u",
        "\x1b[97;;99999999999u",
        "\ud800",
    ],
)
def test_a_key_that_there_is_not_is_none(sequence: str) -> None:
    assert read(f"{sequence}q") in (["<ignore>", "q"], ["q"])


def test_an_answer_of_the_terminal_is_no_key() -> None:
    assert read("\x1b[?1;2cq\x1bP1$r0m\x1b\\w\x1b]52;c;aGVsbG8=\x07e\x1b[A\x1b[?2026;2$yr") == [
        "q",
        "w",
        "e",
        "up",
        "r",
    ]


@contextmanager
def dashboard(home: Home) -> Iterator[tuple[int, int]]:
    """On a pseudo-terminal: its process and the other side."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ |= {"REEF_HOME": str(home.root), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        os.execv(sys.executable, [sys.executable, "-m", "reef_cli.main", "tui"])
    try:
        yield pid, master
    finally:
        os.close(master)


def until(master: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        seen += os.read(master, 65536)
    return seen


def press(master: int, key: bytes, wanted: bytes) -> None:
    """Again and again, as a person would, until it does what it should; what is drawn meanwhile holds nobody back."""
    seen = b""
    while wanted not in seen:
        os.write(master, key)
        again = monotonic() + 2.0
        while wanted not in seen and select.select([master], [], [], max(0.0, again - monotonic()))[0]:
            seen += os.read(master, 65536)


def test_bytes_that_are_nothing_end_nothing(reef_home: Home) -> None:
    with dashboard(reef_home) as (pid, master):
        until(master, _EMPTY)
        for data in (
            b"\xff\xfe\x80\xc3", b"\x1b[99999999999999999999~", b"\x1b[M\xff\xff\xff", b"\x1b[<999;99999;99999M",
            b"\x1bP1$r0m\x1b\\\x1b]52;c;aGVsbG8=\x07", b"\x00" * 99, b"\x1b" * 99,
            b"\x1b[200~q" + b"\x1b[31mq" * 20 + b"\x1b[201~",
        ):  # fmt: skip
            os.write(master, data)
        press(master, b"?", b"Keys in traces")
        os.write(master, b"\x1b[200~a paste without an end")
        press(master, b"q", _ALTERNATE_OUT)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(reef_home: Home, number: signal.Signals) -> None:
    with dashboard(reef_home) as (pid, master):
        until(master, _EMPTY)
        os.kill(pid, number)
        until(master, _ALTERNATE_OUT)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + number


def test_it_ends_with_its_terminal(reef_home: Home) -> None:
    """Where the hang-up signal is ignored, as under nohup, too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with dashboard(reef_home) as (pid, master):
            until(master, _EMPTY)
    finally:
        signal.signal(signal.SIGHUP, before)
    os.waitpid(pid, 0)


def test_without_stdin_it_says_that_it_needs_a_terminal(reef_home: Home) -> None:
    command = f"exec {sys.executable} -m reef_cli.main tui <&-"
    done = subprocess.run(
        ["sh", "-c", command], env={**os.environ, "REEF_HOME": str(reef_home.root)}, capture_output=True
    )
    assert done.returncode == 2
    assert b"needs a terminal" in done.stderr
