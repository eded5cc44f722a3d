"""What hides in text is found, what only looks odd is not; lines are cut to columns."""

import pytest

from daemon.core.plaintext import invisible, one_line, width


@pytest.mark.parametrize(
    "text",
    [
        "Answer in one short sentence.",
        "Réponds en français, s'il te plaît — «merci».",
        "日本語で答えてください。",
        "می‌خواهم",  # Persian needs the joiner
        "Use 👩‍💻 and ❤️ sparingly",
        "नमस्ते, क्‍ष",
        "no-break space",
    ],
)
def test_what_people_write_is_visible(text: str) -> None:
    assert invisible(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\u202eb", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\u200bb", "U+200B"),
        ("a\u200db", "U+200D"),
        ("a\u200c", "U+200C"),
        ("x\U000e0041", "U+E0041"),
        ("\ufeffx", "U+FEFF"),
        ("a\x1b[31mb", "U+001B CONTROL"),
        ("a\x00", "U+0000"),
        ("a\tb", "U+0009"),
        ("a\nb", "U+000A"),
        ("a\u2028b", "U+2028"),
        ("a\u3164b", "U+3164"),
        ("☺\ufe0f\ufe01\ufe02", "U+FE01"),
        ("☺\ufe0e", "U+FE0E"),
        ("☺\u200d\ufe0f", "U+FE0F"),
        ("a\U000e0101", "U+E0101"),
        ("a\ue000", "U+E000"),
        ("a\ud800", "U+D800"),
    ],
)
def test_what_hides_is_named(text: str, says: str) -> None:
    found = invisible(text)
    assert found is not None
    assert found.startswith(says)


def test_controls_may_be_allowed() -> None:
    assert invisible("a\n\tb", keep="\n\t") is None


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("", 0)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "line"),
    [
        ("short", 5, "short"),
        ("too long", 5, "too…"),
        ("two\n lines\t here", 20, "two lines here"),
        ("漢字漢字", 5, "漢字…"),
        ("red \x1b[31m", 20, "red ?[31m"),
        ("x" * 10_000, 4, "xxx…"),
    ],
)
def test_one_line(text: str, columns: int, line: str) -> None:
    assert one_line(text, columns) == line
    assert width(one_line(text, columns)) <= columns
