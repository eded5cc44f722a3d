"""Blocks as rows: code in colours, diffs with their signs, all of it inert and bounded."""

import time

import pytest

from reef_cli.blocks import Block
from reef_cli.tui.code import Code
from reef_cli.tui.drawing import MOST, Drawn, drawn
from reef_cli.tui.window import Span

HOSTILE = "\x1b]52;c;cm0gLXJm\x07 [red]x[/red] \x9b2J \u202egnp.exe"


def roles(line: Drawn) -> list[tuple[str, str]]:
    """What stands in colours in a line of narrow characters."""
    return [(line.text[span.start : span.end], span.style) for span in line.spans]


def test_code_is_in_colours_also_over_several_lines() -> None:
    text = 'def f(x):\n\ta = """b\n  c"""  # why\n'
    lines = list(drawn([Block(text, "code", "python")], 40))
    assert [line.text for line in lines] == ["  def f(x):", '      a = """b', '    c"""  # why']
    assert roles(lines[0]) == [("def", "keyword"), ("f", "name")]
    assert roles(lines[1]) == [('"""b', "string")]
    assert roles(lines[2])[-1] == ("# why", "comment")


def test_a_cut_line_keeps_its_colours_in_columns() -> None:
    lines = list(drawn([Block("x = '漢字漢字漢字'", "code", "python")], 14))
    assert [line.text for line in lines] == ["  x = '漢字漢", "  字漢字'"]
    assert lines[0].spans[-1] == Span(6, 13, "string")
    assert lines[1].spans[-1] == Span(2, 9, "string")


@pytest.mark.parametrize("language", ["", "no-such-language", "file.nobody-knows", "../../etc", "python\x1b[0m"])
def test_an_unknown_language_is_plain(language: str) -> None:
    (line,) = drawn([Block("x = 1", "code", language)], 40)
    assert (line.text, list(line.spans)) == ("  x = 1", [])


def test_a_files_name_tells_its_language() -> None:
    (line,) = drawn([Block("a: 1", "code", "/x/config.yaml")], 40)
    assert roles(line)[0] == ("a", "name")


def test_only_what_is_seen_is_lexed() -> None:
    lines = ["x = 1"] * 5000
    code = Code(lines, "python")
    began = time.monotonic()
    code.spans(3, 0, 5, indent=0)
    assert (code._done <= 5, time.monotonic() - began < 2) == (True, True)


def test_long_lines_and_long_code_stay_plain() -> None:
    assert Code(["x = " + "1" * 2000], "python").spans(0, 0, 9, indent=0) == []
    assert Code(["x = 1"] * 20_000, "python").spans(0, 0, 5, indent=0) == []


def test_a_diff_has_its_signs_in_colours() -> None:
    text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n*** Update File: q"
    assert [(line.text, line.style) for line in drawn([Block(text, "diff")], 40)] == [
        ("  --- a", "bold"), ("  +++ b", "bold"), ("  @@ -1 +1 @@", "hunk"), ("  -x", "removed"), ("  +y", "added"),
        ("   z", "dim"), ("  *** Update File: q", "bold"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["text", "code", "diff"])
def test_whatever_it_is_it_is_inert(kind: str) -> None:
    lines = list(drawn([Block(f"+{HOSTILE}\n" * 3, kind, "python")], 30))  # type: ignore[arg-type]
    assert all(line.text.isprintable() for line in lines)
    assert max(len(line.text) for line in lines) <= 30


@pytest.mark.parametrize("kind", ["text", "code", "diff"])
@pytest.mark.parametrize("text", ["x" * 10_000_000, "é" * 10_000_000, "word " * 2_000_000, "\n" * 10_000_000])
def test_ten_megabytes_are_cut_and_say_so(kind: str, text: str) -> None:
    began = time.monotonic()
    *lines, last = drawn([Block(text, kind, "python")], 80)  # type: ignore[arg-type]
    assert time.monotonic() - began < 5
    assert sum(len(line.text) for line in lines) < 2 * MOST
    assert last.text == "  … cut here; all 10000000 characters: p, or e"
