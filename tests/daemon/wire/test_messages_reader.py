"""Messages answers as events."""

from typing import Any

import pytest

from daemon.core.errors import EngineError
from daemon.core.generation import (
    EngineEvent,
    Finished,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolArguments,
    ToolStart,
)
from daemon.core.records import Usage
from daemon.wire.messages_reader import MessagesReader

START = {"type": "message_start", "message": {"usage": {"input_tokens": 8, "cache_read_input_tokens": 12}}}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **fields}, "usage": {"output_tokens": 7}}


def read(*events: dict[str, Any]) -> list[EngineEvent]:
    reader = MessagesReader("rec_1")
    return [*(found for one in (START, *events) for found in reader.event("", one)), *reader.end()]


def test_a_signed_thought_words_and_a_call() -> None:
    assert read(
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        start(1, type="text", text=""),
        delta(1, "text_delta", text="yes"),
        stop(1),
        start(2, type="tool_use", id="t1", name="Bash", input={}),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"c":'),
        delta(2, "input_json_delta", partial_json='"ls"}'),
        stop(2),
        end("tool_use"),
    ) == [
        Started(20, 12),
        ThinkingDelta("hm"),
        ThinkingEnd("anthropic:c2ln"),
        TextDelta("yes"),
        ToolStart(0, "t1", "Bash"),
        ToolArguments(0, '{"c":'),
        ToolArguments(0, '"ls"}'),
        Finished("tool_calls", Usage(prompt=20, completion=7, cached=12)),
    ]


def test_a_call_whose_input_came_at_once() -> None:
    """https://github.com/envoyproxy/ai-gateway/issues/1465 is the other way round: an empty one is no text."""
    events = read(start(0, type="tool_use", id="t1", name="Bash", input={"c": "ls"}), stop(0), end("tool_use"))
    assert events[1:3] == [ToolStart(0, "t1", "Bash"), ToolArguments(0, '{"c":"ls"}')]


def test_a_hidden_thought_goes_back_as_it_came() -> None:
    assert read(start(0, type="redacted_thinking", data="abc"), stop(0), end("end_turn"))[1] == ThinkingEnd(
        "anthropic-redacted:abc"
    )


def test_what_ran_on_the_vendors_servers_is_not_told() -> None:
    events = read(
        start(0, type="server_tool_use", id="s", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"q":1}'),
        stop(0),
        end("end_turn"),
    )
    assert [type(event) for event in events] == [Started, Finished]


@pytest.mark.parametrize(
    ("reason", "read_as"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "stop"),
    ],
)
def test_reasons_to_stop(reason: str, read_as: str) -> None:
    last = read(end(reason))[-1]
    assert isinstance(last, Finished)
    assert last.reason == read_as


def test_the_stop_sequence_is_named() -> None:
    last = read(end("stop_sequence", stop_sequence="END"))[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.stop_sequence) == ("stop_sequence", "END")


def test_a_whole_answer() -> None:
    reader = MessagesReader("rec_1")
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "yes"},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"c": "ls"}},
    ]
    body = {"content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 2}}
    assert [*reader.whole(body), *reader.end()] == [
        Started(3, 0),
        ThinkingDelta("hm"),
        ThinkingEnd("anthropic:c2ln"),
        TextDelta("yes"),
        ToolStart(0, "t1", "Bash"),
        ToolArguments(0, '{"c":"ls"}'),
        Finished("tool_calls", Usage(prompt=3, completion=2)),
    ]


def test_an_error_is_raised_and_a_missing_end_too() -> None:
    with pytest.raises(EngineError, match="Overloaded"):
        read({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(EngineError, match="without its end"):
        read(start(0, type="text", text=""), delta(0, "text_delta", text="x"))


@pytest.mark.parametrize(
    "event",
    [{"error": {"message": "broke"}}, {"error": "broke"}, {"object": "error", "message": "broke"}, {"detail": "broke"}],
)
def test_an_error_in_any_shape_inside_the_200_is_raised(event: dict[str, Any]) -> None:
    """Gateways and servers such as vLLM have one of their own for every route."""
    with pytest.raises(EngineError, match="broke"):
        MessagesReader("rec_1").event("", event)
    with pytest.raises(EngineError, match="broke"):
        MessagesReader("rec_1").whole(event)
