"""The line around what was asked for."""

import pytest

from daemon.store.query import parse
from daemon.store.snippets import line


@pytest.mark.parametrize(
    ("texts", "query", "shown"),
    [
        (["no such file"], "such", "no such file"),
        (["first", "the SECOND one"], "second", "the SECOND one"),
        (["two\nlines  of text"], '"two lines"', "two lines of text"),
        (["a b"], '"b a"', None),
        (["one word", "other words"], '"one word" other', "one word"),
        (["nothing here"], "café", ""),
        ([], "x", ""),
        ([], '"x y"', None),
    ],
)
def test_a_line(texts: list[str], query: str, shown: str | None) -> None:
    assert line(texts, parse(query)) == shown


def test_a_long_text_is_cut_around_the_word() -> None:
    shown = line(["x " * 5000 + "needle" + " y" * 5000], parse("needle"))
    assert shown is not None
    assert shown.startswith("…")
    assert "needle" in shown
    assert len(shown) < 200
