"""Text for cells: inert, as wide as counted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from rich.cells import cell_len

from reef_cli.tui.text import bar, fit, inert, moment, number, one_line, rating, wrapped
from tests.fakes.dashboard import NOW

DAY = 86_400 * 10**9


@given(some.text(max_size=200), some.integers(0, 60))
def test_cells_are_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert cell_len(fit(inert(text), width)) == width
    assert cell_len(fit(inert(text), width, right=True)) == width


@settings(deadline=None)
@given(some.text(max_size=300), some.integers(4, 40))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join("".join(map(inert, text.splitlines())).split())


@given(some.text(max_size=200))
def test_nothing_a_terminal_acts_on_is_left(text: str) -> None:
    assert all(char.isprintable() or char == "\u200c" for char in inert(text))


def test_joined_emoji_stand_apart() -> None:
    assert inert("👨‍👩‍👧👍🏽❤️") == "👨👩👧👍❤"


def test_cutting() -> None:
    assert fit("漢字漢字", 5) == "漢字…"
    assert fit("漢字漢字", 4) == "漢… "
    assert fit("abc", 0) == ""


def test_wrapping_keeps_indents_and_breaks_long_words() -> None:
    assert wrapped("    one two three", 10) == ["    one", "    two", "    three"]
    assert wrapped("a" * 9, 4) == ["aaaa", "aaaa", "a"]
    assert wrapped("", 10) == [""]
    assert wrapped("a\n\nb", 10) == ["a", "", "b"]


def test_one_line() -> None:
    assert one_line("a\n\tb\x1b[2J\n\n c " * 1000, 10) == "a b\\x1b[2J c"
    assert len(one_line("word " * 1000, 50)) <= 50


def test_moments() -> None:
    assert moment(NOW - 60 * 10**9, NOW) == "11:59:00"
    assert moment(NOW - 3 * DAY, NOW) == "28 Jan"
    assert moment(NOW - 400 * DAY, NOW) == "Dec 2024"
    assert moment(None, NOW) == "-"


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (9999, "9999"), (12_345, "12k"), (3_400_000, "3.4M")])
def test_numbers(count: int, text: str) -> None:
    assert number(count) == text


def test_bars_and_ratings() -> None:
    assert bar(20, 40) == "[#####.....] 50 %"
    assert bar(50, 40) == "[##########] 100 %"
    assert bar(3, 0) == ""
    assert [rating(score) for score in (None, 1.0, 0.0, 0.5)] == ["", "+ good", "- bad", "~ 0.5"]
