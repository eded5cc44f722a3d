"""Estimates against what two vocabularies make of the same texts, measured once: cl100k and Anthropic's public one."""

from pathlib import Path

import pytest

from daemon.core.records import ChatRequest, Image, Message, Text, Tool, ToolResult, ToolUse
from daemon.wire.estimate import text_tokens, tokens

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("file", "counted"),
    [
        ("LICENSE", (2270, 2216)),
        ("tests/golden/agents/claude-code.json", (3110, 3283)),
        ("tests/golden/agents/codex.json", (7304, 7710)),
        ("tests/golden/agents/pi.json", (1252, 1351)),
    ],
)
def test_prose_and_json_are_within_15_percent_of_both(file: str, counted: tuple[int, int]) -> None:
    """BUGS B076."""
    guess = text_tokens((ROOT / file).read_text("utf-8"))
    assert all(abs(guess / exact - 1) < 0.15 for exact in counted)


def test_chinese_is_no_quarter_of_its_letters() -> None:
    text = "阴气渐重。天地之间忽然安静下来。人们抬起头。看见云层压得很低。" * 20
    assert all(abs(text_tokens(text) / exact - 1) < 0.15 for exact in (840, 760))


def test_everything_that_is_read_counts() -> None:
    bare = tokens(ChatRequest("m", (Message("user", (Text("hi"),)),)))
    assert 0 < bare < 20
    more = ChatRequest(
        "m",
        (
            Message("system", (Text("rules " * 100),)),
            Message("assistant", (ToolUse("c", "bash", '{"command": "ls"}'),)),
            Message("tool", (ToolResult("c", "out " * 50, images=(Image("image/png", "x"),)),)),
        ),
        tools=(Tool("bash", "runs a command", {"type": "object", "properties": {}}),),
    )
    assert tokens(more) > 100 + 50 + 1000 + 300


def test_nothing_is_nothing() -> None:
    assert tokens(ChatRequest("m", ())) == 0
