"""One line of whatever an agent sends."""

import time

import pytest

from daemon.store.titles import TITLE, one_line, title


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Fix the test", "Fix the test"),
        ("  two\n\nlines\twith   blanks ", "two lines with blanks"),
        ("red \x1b[31mtext\x1b[0m\x07 bell", "red [31mtext [0m bell"),
        ("left \u202eright\u2066 evil\u200b zero \U000e0041tag", "left right evil zero tag"),
        ("family 👨\u200d👩\u200d👧 stays", "family 👨\u200d👩\u200d👧 stays"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("", ""),
        ("\n\t ", ""),
    ],
)
def test_a_line_has_nothing_that_moves_a_terminal(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert title("word " * 50) == "word " * 15 + "word…"
    assert len(title("x" * 500)) == TITLE


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<system-reminder>CLAUDE.md says …</system-reminder>\nFix it", "Fix it"),
        ("a <system-reminder>x</system-reminder>b<system-reminder>y</system-reminder> c", "a b c"),
        ("asked <system-reminder>never closed", "asked"),
        ("<system-reminder>only</system-reminder>", ""),
    ],
)
def test_reminders_are_no_title(text: str, line: str) -> None:
    assert title(text) == line


def test_ten_megabytes_of_open_reminders_take_no_time() -> None:
    begin = time.thread_time()
    title("<system-reminder>" * 600_000)
    title("</system-reminder><system-reminder>" * 300_000)
    assert time.thread_time() - begin < 2
