"""Answers in Anthropic's shape."""

import json
from typing import Any

import pytest

from daemon.core.generation import (
    EngineEvent,
    FinishReason,
    RefusalDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from daemon.core.records import ChatRequest, Dialect
from daemon.wire.base import Renderer, dialect
from daemon.wire.sse import events
from tests.daemon.wire.answers import called, spoken


def renderer() -> Renderer:
    return dialect(Dialect.MESSAGES).renderer(ChatRequest("m", ()), "rec_123", "tiny", 1_700_000_000)


def streamed(script: list[EngineEvent]) -> list[Any]:
    answer = renderer()
    stream = b"".join(answer.event(event) for event in script) + answer.finish()
    found = []
    for name, data in events(stream):
        value = json.loads(data)
        assert value["type"] == name
        found.append(value)
    return found


def whole(script: list[EngineEvent]) -> Any:
    answer = renderer()
    for event in script:
        answer.event(event)
    return json.loads(answer.body())


def test_blocks_are_opened_filled_and_closed_in_order() -> None:
    assert [(event["type"], event.get("index")) for event in streamed(called(text="Look:"))] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]


def test_the_message_starts_empty_with_the_prompts_usage() -> None:
    assert streamed(spoken("a"))[0]["message"] == {
        "id": "msg_123",
        "type": "message",
        "role": "assistant",
        "model": "tiny",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 8,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 12,
            "output_tokens": 0,
        },
    }


def test_text_and_arguments_come_as_deltas_of_their_kind() -> None:
    found = [event["delta"] for event in streamed(called(text="Look:")) if event["type"] == "content_block_delta"]
    assert found == [
        {"type": "text_delta", "text": "Look:"},
        {"type": "input_json_delta", "partial_json": '{"command": '},
        {"type": "input_json_delta", "partial_json": '"ls"}'},
        {"type": "input_json_delta", "partial_json": '{"command": "pwd"}'},
    ]


def test_an_answer_without_text_opens_no_text_block() -> None:
    starts = [event["content_block"]["type"] for event in streamed(called()) if event["type"] == "content_block_start"]
    assert starts == ["tool_use", "tool_use"]


def test_an_answer_without_anything_is_still_whole() -> None:
    assert [event["type"] for event in streamed(spoken())] == ["message_start", "message_delta", "message_stop"]
    assert whole(spoken())["content"] == []


@pytest.mark.parametrize(
    ("reason", "sequence", "named"),
    [
        ("stop", None, "end_turn"),
        ("stop_sequence", "END", "stop_sequence"),
        ("length", None, "max_tokens"),
        ("tool_calls", None, "tool_use"),
    ],
)
def test_reasons(reason: FinishReason, sequence: str | None, named: str) -> None:
    script = spoken("a", reason=reason, stop_sequence=sequence)
    last = streamed(script)[-2]
    assert last["delta"] == {"stop_reason": named, "stop_sequence": sequence}
    assert last["usage"]["output_tokens"] == 7
    body = whole(script)
    assert (body["stop_reason"], body["stop_sequence"]) == (named, sequence)


def test_a_body_holds_text_and_inputs_as_objects() -> None:
    body = whole(called(text="Look:"))
    assert body["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "tool_use", "id": "call_a", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "call_b", "name": "bash", "input": {"command": "pwd"}},
    ]
    assert body["usage"]["cache_read_input_tokens"] == 12


def test_arguments_that_are_no_json_are_not_lost_in_a_body() -> None:
    assert whole(called(second='{"command": "p'))["content"][1]["input"] == {"invalid_json": '{"command": "p'}


def test_a_call_without_arguments_has_an_empty_input() -> None:
    assert whole(called(second=""))["content"][1]["input"] == {}


def test_a_keepalive_is_a_ping() -> None:
    assert renderer().keepalive() == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_half_an_emoji_from_an_engine_can_still_be_written() -> None:
    answer = renderer()
    answer.event(Started(1, 0))
    assert b"\xef\xbf\xbd" in answer.event(TextDelta("\ud83d"))


def test_a_thought_is_a_block_that_ends_with_its_signature() -> None:
    """BUGS B084: https://github.com/nielspeter/claude-code-proxy/pull/17: without it Claude Code drops the whole
    turn.
    """
    script: list[EngineEvent] = [Started(20, 12), ThinkingDelta("hm"), ThinkingEnd("openai:rs_1:x"), *spoken("yes")[1:]]
    told = streamed(script)
    assert [event["delta"] for event in told if event.get("index") == 0 and "delta" in event] == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "openai:rs_1:x"},
    ]
    assert [event["type"] for event in told if event.get("index") == 0][-1] == "content_block_stop"
    assert whole(script)["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "openai:rs_1:x"},
        {"type": "text", "text": "yes"},
    ]


def test_a_thought_without_words_keeps_its_place() -> None:
    script: list[EngineEvent] = [Started(20, 12), ThinkingEnd("openai:rs_1:x"), *spoken("yes")[1:]]
    assert whole(script)["content"][0] == {"type": "thinking", "thinking": "", "signature": "openai:rs_1:x"}


def test_a_refusal_is_words_and_a_reason_to_stop() -> None:
    answer = whole([Started(20, 12), RefusalDelta("I cannot"), *spoken()[1:]])
    assert (answer["content"][0]["text"], answer["stop_reason"]) == ("I cannot", "refusal")
