"""Prose, code and diffs told apart."""

import time

import pytest

from reef_cli.blocks import Block, difference, output, prose


def test_fenced_code_is_code_and_its_fences_stay() -> None:
    text = "look:\n```python\nx = 1\n```\nand\n~~~\nplain\n~~~"
    assert prose(text) == [
        Block("look:\n```python"), Block("x = 1", "code", "python"), Block("```\nand\n~~~"), Block("plain", "code"),
        Block("~~~"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["no fence", "a ``` in the middle", "`` ` ``"])
def test_text_without_a_fence_is_text(text: str) -> None:
    assert prose(text) == [Block(text)]


def test_a_fence_that_is_not_closed_yet_is_code() -> None:
    assert prose("```sh\nls") == [Block("```sh"), Block("ls", "code", "sh")]
    assert prose("````\n```\n````") == [Block("````"), Block("```", "code"), Block("````")]


def test_a_fenced_diff_and_a_diff_that_a_tool_gave_back() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"
    assert prose(f"```diff\n{diff}\n```")[1] == Block(diff, "diff")
    assert output(diff, "x.py") == [Block(diff, "diff")]
    assert output(f"diff --git a/x b/x\n{diff}") == [Block(f"diff --git a/x b/x\n{diff}", "diff")]
    assert output("-a\n+b") == [Block("-a\n+b")]
    assert output("x = 1", "a/b.py") == [Block("x = 1", "code", "a/b.py")]


def test_an_edit_shows_what_changed_and_a_little_around_it() -> None:
    was = "\n".join(f"line {n}" for n in range(20))
    assert difference(was, was.replace("line 10", "line ten")).text.splitlines() == [
        " line 7", " line 8", " line 9", "-line 10", "+line ten", " line 11", " line 12", " line 13",
    ]  # fmt: skip
    assert difference("", "new\nfile").text == "+new\n+file"
    assert difference("old", "").text == "-old"
    assert difference("same", "same").text == ""


def test_a_huge_edit_is_not_compared() -> None:
    began = time.monotonic()
    found = difference("a\nb\n" * 100_000, "b\na\n" * 100_000).text
    assert found.count("\n") == 399_999
    assert time.monotonic() - began < 5
