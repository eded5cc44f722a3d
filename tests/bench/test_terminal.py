"""The terminal of a program under measurement: a real program in it, and what its output makes of the screen."""

import os
import sys

import pytest

from bench.terminal import Program, Screen


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        (b"one\r\ntwo", ["one", "two"]),
        (b"\x1b[2;3Hxy\x1b[1;1H\x1b[1;7mab\x1b[0m", ["ab", "  xy"]),
        ("漢字x".encode(), ["漢字x", ""]),
        (b"abcdef\x1b[1;3H\x1b[K", ["ab", ""]),
        (b"abc\x1b[2J\x1b[Hd", ["d", ""]),
        (b"\x1b]0;a title\x07\x1b[?1049h\x1b[?2026$pa\x1b[?25lb", ["ab", ""]),
        (b"past the end", ["past t", ""]),
    ],
)
def test_what_output_makes_of_the_screen(written: bytes, rows: list[str]) -> None:
    whole, pieces = Screen(6, 2), Screen(6, 2)
    whole.feed(written)
    for n in range(len(written)):
        pieces.feed(written[n : n + 1])
    assert [whole.row(y) for y in range(2)] == rows
    assert pieces.text() == whole.text()


def test_a_program_in_it() -> None:
    code = "import os; print(os.get_terminal_size()); print('got', input()); input()"
    with Program([sys.executable, "-c", code], {}) as program:
        program.until(lambda screen: "columns=80, lines=24" in screen.row(0), "its size")
        began = program.press("x\r")
        assert program.until(lambda screen: "got x" in screen.text(), "what was typed") > began
        assert program.memory() > 1
        assert program.cpu() >= 0
        pid = program.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_never_comes_is_told_with_the_screen() -> None:
    with (
        Program([sys.executable, "-c", "print('shown'); input()"], {}) as program,
        pytest.raises(SystemExit, match="it did not come:\nshown"),
    ):
        program.until(lambda screen: False, "it", 0.5)
