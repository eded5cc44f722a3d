"""What a provider refuses of a request is left out where it was a wish."""

import json
from typing import Any

import pytest

from daemon.wire.concede import conceded

CHAT = {"model": "m", "messages": [], "max_tokens": 9, "reasoning_effort": "high", "temperature": 0.5}


def without(body: dict[str, Any], said: str) -> Any:
    raw = conceded(json.dumps(body).encode(), said)
    return None if raw is None else json.loads(raw)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("Unsupported parameter: 'reasoning_effort'", "reasoning_effort"),
        ("This model does not support thinking", "reasoning_effort"),
        ("Unsupported value: 'temperature' does not support 0.5 with this model.", "temperature"),
    ],
)
def test_only_what_was_named_is_left_out(said: str, field: str) -> None:
    assert without(CHAT, said) == {name: value for name, value in CHAT.items() if name != field}


def test_a_limit_is_told_under_the_name_that_the_server_asks_for() -> None:
    found = without(CHAT, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    assert (found["max_completion_tokens"], "max_tokens" in found) == (9, False)


def test_a_limit_over_the_models_own_is_lowered_to_it() -> None:
    said = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku"
    assert without({"max_tokens": 32000}, said) == {"max_tokens": 8192}


@pytest.mark.parametrize("said", ["messages: roles must alternate", "invalid x-api-key", "", "tools.0: bad schema"])
def test_what_is_about_the_question_itself_stays(said: str) -> None:
    assert without(CHAT, said) is None


def test_a_model_that_keeps_no_thoughts_is_not_asked_for_them() -> None:
    body = {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}}
    assert without(body, "Encrypted content is not supported with this model.") == {"reasoning": {"effort": "low"}}


def test_cache_marks_go_where_they_are_refused_and_nothing_else() -> None:
    """https://github.com/MadAppGang/claudish/pull/256: GLM's endpoint answers 400 to them."""
    mark = {"cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "a", "name": "b", "input": {"cache_control": "an argument"}}
    body = {
        "model": "m",
        "stop_sequences": ["."],
        "system": [{"type": "text", "text": "cache_control"}],
        "tools": [{"name": "b", "input_schema": {"properties": {"cache_control": {}}}}],
        "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}],
    }
    marked: dict[str, Any] = json.loads(json.dumps(body))
    for blocks in (marked["system"], marked["tools"], marked["messages"][1]["content"]):
        blocks[-1] |= mark
    assert without(marked, "messages.1.content.0.cache_control: Extra inputs are not permitted") == body
    assert without(body, "cache_control: Extra inputs are not permitted") is None
