"""Messages answers put together from bodies and streams, whole, odd and broken off."""

import json
from typing import Any

import pytest

from daemon.core.records import Dialect, Transcript, Usage
from daemon.wire.base import dialect

CODEC = dialect(Dialect.MESSAGES)
TOOL = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}}


def recorded(response: bytes, *, stream: bool = True) -> Transcript:
    return CODEC.transcript(b"", response, stream=stream, redact=lambda raw: (raw, 0))


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"model": "tiny", "content": [], "usage": usage}}


def opened(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def written(*pieces: str, index: int = 0) -> list[dict[str, Any]]:
    return [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]


def content(response: bytes, *, stream: bool = True) -> Any:
    answer = recorded(response, stream=stream).answer
    assert answer is not None
    return json.loads(answer.raw)["content"]


def test_a_stream_becomes_the_message_an_agent_sends_back() -> None:
    response = sse(
        start(input_tokens=5, cache_read_input_tokens=8, cache_creation_input_tokens=2, output_tokens=1),
        {"type": "ping"},
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="c2ln"),
        {"type": "content_block_stop", "index": 0},
        opened(1, type="text", text=""),
        delta(1, "text_delta", text="Hel"),
        delta(1, "text_delta", text="lo"),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )
    assert content(response) == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Hello"},
    ]
    found = recorded(response)
    assert (found.stop_reason, found.model, found.note) == ("end_turn", "tiny", None)
    assert found.usage == Usage(prompt=15, completion=7, cached=8, written=2)


def test_a_body_becomes_the_same_message() -> None:
    blocks = [{"type": "text", "text": "Hello"}, {**TOOL, "input": {"location": "x"}}]
    body = {"model": "tiny", "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    assert content(json.dumps(body).encode(), stream=False) == blocks
    assert recorded(json.dumps(body).encode(), stream=False).stop_reason == "tool_use"


def test_the_empty_input_at_a_blocks_start_is_no_part_of_the_arguments() -> None:
    """BUGS B007."""
    response = sse(start(), opened(0, **TOOL), *written("", '{"location":', ' "San', ' Francisco"}'))
    assert content(response)[0]["input"] == {"location": "San Francisco"}


def test_of_concatenated_inputs_the_last_object_counts() -> None:
    """BUGS B012."""
    assert content(sse(opened(0, **TOOL), *written("{}", '{"a":1}')))[0]["input"] == {"a": 1}


def test_an_input_given_whole_at_the_start_stays() -> None:
    assert content(sse(opened(0, **{**TOOL, "input": {"a": 1}})))[0]["input"] == {"a": 1}


def test_a_call_without_arguments_has_an_empty_input() -> None:
    assert content(sse(opened(0, **TOOL), *written("")))[0]["input"] == {}


def test_raw_control_characters_in_arguments_are_read() -> None:
    """BUGS B011."""
    assert content(sse(opened(0, **TOOL), *written('{"text": "two\nlines"}')))[0]["input"] == {"text": "two\nlines"}


@pytest.mark.parametrize("text", [r'{"path": "\d"}', '{"path": "x'])
def test_an_input_that_is_no_json_is_kept_as_written(text: str) -> None:
    response = sse(opened(0, **TOOL), *written(text[:5], text[5:]))
    assert content(response)[0]["input"] == text
    answer = recorded(response).answer
    assert answer is not None
    assert text in answer.text
    assert recorded(response).note == "the arguments of a call are no whole JSON object"


def test_redacted_thinking_and_unknown_blocks_stay_whole() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "redacted_thinking", "data": "abc"},
        {"type": "server_tool_use", "id": "s", "input": {"q": 1}},
    ]
    assert content(sse(*(opened(i, **block) for i, block in enumerate(blocks)))) == blocks


def test_citations_are_gathered() -> None:
    response = sse(opened(0, type="text", text="", citations=None), delta(0, "citations_delta", citation={"a": 1}))
    assert content(response)[0]["citations"] == [{"a": 1}]


def test_a_delta_without_its_start_is_not_lost() -> None:
    assert content(sse(delta(0, "text_delta", text="a"))) == [{"type": "text", "text": "a"}]


def test_events_without_a_name_are_known_by_their_type() -> None:
    body = sse(opened(0, type="text", text=""), delta(0, "text_delta", text="a")).replace(b"event: ", b"x: ")
    assert content(body) == [{"type": "text", "text": "a"}]


def test_a_stream_broken_off_is_kept_as_far_as_it_came() -> None:
    response = sse(start(input_tokens=5), opened(0, type="text", text=""), delta(0, "text_delta", text="Hel"))
    found = recorded(response + b'event: content_block_delta\ndata: {"type":"content_bl')
    assert found.answer is not None
    assert found.answer.text == "Hel"
    assert found.stop_reason is None
    assert found.usage.prompt == 5


def test_what_a_gateway_says_it_cost_is_kept() -> None:
    ended = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3, "cost": 0.25}}
    assert recorded(sse(start(input_tokens=5), ended, {"type": "message_delta", "usage": {}})).usage.cost == 0.25


def test_null_usage_fields_leave_what_was_known() -> None:
    ended = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": None, "output_tokens": 3}}
    assert recorded(sse(start(input_tokens=5, cache_read_input_tokens=None), ended)).usage == Usage(5, 3)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}},
        {"type": "error", "error": "too busy"},
        {"type": "", "detail": "too busy"},
        {"type": "", "object": "error", "message": "too busy"},
    ],
)
def test_an_error_inside_a_stream_is_noted_and_the_text_before_it_kept(event: dict[str, Any]) -> None:
    found = recorded(sse(opened(0, type="text", text="Hel"), event))
    assert found.note == "the provider reported: too busy"
    assert found.answer is not None
    assert found.answer.text == "Hel"


def test_an_error_as_a_body_is_noted() -> None:
    body = {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}
    assert recorded(json.dumps(body).encode(), stream=False).note == "the provider reported: model: x"


def test_pings_alone_are_no_answer() -> None:
    assert recorded(sse({"type": "ping"}, {"type": "ping"})).answer is None


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start", "message": None},
        {"type": "message_delta", "delta": "x", "usage": "y"},
        {"type": "content_block_start", "index": 9, "content_block": "x"},
        {"type": "content_block_delta", "index": 0, "delta": "x"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 3}},
        {"type": "something_new", "data": {}},
    ],
)
def test_odd_events_never_stop_the_recording(event: dict[str, Any]) -> None:
    assert content(sse(opened(0, type="text", text="a"), event))[0]["text"] == "a"
