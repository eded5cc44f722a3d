"""What reaches the terminal: inert, aligned, and the same with and without one."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reef_cli import output


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("safe\u202etxt.exe", "safe\\u202etxt.exe"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("carriage\rreturn", "carriage\\x0dreturn"),
        ("c1 \x9b31m", "c1 \\x9b31m"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028separator", "line\\u2028separator"),
    ],
)
def test_what_a_terminal_could_act_on_is_spelled_out(hostile: str, shown: str) -> None:
    assert output.visible(hostile) == shown


@pytest.mark.parametrize("text", ["plain", "tab\tand\nline", "naïve café", "日本語", "👩\u200d🔬", "عربى"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert output.visible(text) == text


@settings(max_examples=50)
@given(st.text())
def test_no_text_at_all_leaves_a_control_character(text: str) -> None:
    shown = output.visible(text)
    assert all(char.isprintable() or char in "\n\t\u200c\u200d" for char in shown)


@settings(max_examples=50)
@given(st.text(), st.integers(2, 80))
def test_one_line_is_one_line_of_that_width(text: str, width: int) -> None:
    line = output.one_line(text, width)
    assert len(line) <= width
    assert "\n" not in line


def test_a_table_aligns_wide_characters_and_puts_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("name", "turns"), [("日本", 5), ("ab", 120), (None, "7")])
    assert capsys.readouterr().out == "name  turns\n日本      5\nab      120\n-         7\n"


def test_a_table_is_not_wider_than_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("id", "title"), [("x" * 40, "日本 " * 30), ("y", "short")])
    _, long, short = capsys.readouterr().out.splitlines()
    assert long.endswith("…")
    assert 78 <= len(long) + long.count("日") + long.count("本") <= 80
    assert short.endswith("short")
    output.table(("id", "title"), [("x" * 90, "at least some of it")])
    assert capsys.readouterr().out.splitlines()[1].endswith("  at least some o…")


def test_a_table_makes_its_cells_inert(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("title",), [("two\nlines \x1b[31m",)])
    assert capsys.readouterr().out.splitlines()[1:] == ["two\\x0alines \\x1b[31m"]


def test_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    output.json({"text": "\u202e\x1b日"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert "\x1b" not in out


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_changes_decoration_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", _Terminal())
    assert output.bold("word") == "\x1b[1mword\x1b[0m"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_decoration_can_be_declined(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", _Terminal())
    monkeypatch.setenv(name, value)
    assert output.bold("word") == "word"


def test_a_terminal_of_another_encoding_gets_a_substitute(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.line("日 → ok")
    assert raw.getvalue() == b"? ? ok\n"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "2 kB"),
        (98_300_000, "98.3 MB"),
        (4_200_000_000, "4.2 GB"),
        (10**13, "10000.0 GB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert output.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8 s"), (42, "42 s"), (200, "3 min"), (7500, "2 h 5 min"), (400_000, "4 d")]
)
def test_durations(seconds: float, text: str) -> None:
    assert output.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "$0"), (0.00001, "<$0.0001"), (0.0123, "$0.0123"), (0.5, "$0.50"), (12.3, "$12.30")],
)
def test_dollars(value: float | None, text: str) -> None:
    assert output.dollars(value) == text
