"""Responses answers as events."""

from typing import Any

import pytest

from daemon.core.errors import EngineError
from daemon.core.generation import (
    EngineEvent,
    Finished,
    RefusalDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolArguments,
    ToolStart,
)
from daemon.core.records import Usage
from daemon.wire.responses_reader import ResponsesReader

CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash", "arguments": '{"a":1}'}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
WORDS = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}


def event(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, **fields}


def ended(status: str = "completed", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 2}
    return {"type": f"response.{status}", "response": {"status": status, "output": [], "usage": usage, **fields}}


def read(*events: dict[str, Any]) -> list[EngineEvent]:
    reader = ResponsesReader("rec_1")
    return [*(found for one in (CREATED, *events) for found in reader.event("", one)), *reader.end()]


USAGE = Usage(prompt=5, completion=2)


def test_a_thought_words_and_a_call_as_they_stream() -> None:
    assert read(
        event("output_item.added", item={**THOUGHT, "summary": []}),
        event("reasoning_summary_text.delta", summary_index=0, delta="hm"),
        event("output_item.done", item={**THOUGHT, "encrypted_content": "ZW5j"}),
        event("output_text.delta", 1, content_index=0, delta="yes"),
        event("output_item.done", 1, item=WORDS),
        event("output_item.added", 2, item={**CALL, "arguments": ""}),
        event("function_call_arguments.delta", 2, delta='{"a"'),
        event("function_call_arguments.delta", 2, delta=":1}"),
        event("output_item.done", 2, item=CALL),
        ended(),
    ) == [
        Started(0, 0),
        ThinkingDelta("hm"),
        ThinkingEnd("openai:rs_1:ZW5j"),
        TextDelta("yes"),
        ToolStart(0, "c1", "bash"),
        ToolArguments(0, '{"a"'),
        ToolArguments(0, ":1}"),
        Finished("tool_calls", USAGE),
    ]


def test_the_parts_of_a_summary_are_paragraphs() -> None:
    events = read(
        event("reasoning_summary_text.delta", summary_index=0, delta="a"),
        event("reasoning_summary_text.delta", summary_index=1, delta="b"),
        event("reasoning_summary_text.delta", summary_index=1, delta="c"),
        event("output_item.done", item=THOUGHT),
        ended(),
    )
    assert events[1:5] == [ThinkingDelta("a"), ThinkingDelta("\n\nb"), ThinkingDelta("c"), ThinkingEnd("")]


def test_items_of_which_nothing_streamed_are_told_when_they_are_done() -> None:
    events = read(
        event("output_item.done", 0, item=THOUGHT),
        event("output_item.done", 1, item=WORDS),
        event("output_item.done", 2, item=CALL),
        ended(),
    )
    assert events[1:-1] == [
        ThinkingDelta("hm"),
        ThinkingEnd(""),
        TextDelta("yes"),
        ToolStart(0, "c1", "bash"),
        ToolArguments(0, '{"a":1}'),
    ]


def test_a_whole_answer_is_its_items() -> None:
    reader = ResponsesReader("rec_1")
    body = {"object": "response", "status": "completed", "output": [WORDS, CALL], "usage": {"output_tokens": 2}}
    events = [*reader.whole(body), *reader.end()]
    assert [type(one) for one in events] == [Started, TextDelta, ToolStart, ToolArguments, Finished]


def test_a_refusal_is_told_as_one() -> None:
    events = read(event("refusal.delta", content_index=0, delta="no"), ended())
    assert events[1:] == [RefusalDelta("no"), Finished("refusal", USAGE)]


@pytest.mark.parametrize(("told", "read_as"), [("max_output_tokens", "length"), ("content_filter", "refusal")])
def test_an_answer_that_was_cut_off(told: str, read_as: str) -> None:
    last = read(ended("incomplete", incomplete_details={"reason": told}))[-1]
    assert isinstance(last, Finished)
    assert last.reason == read_as


@pytest.mark.parametrize(
    "failure",
    [
        ended("failed", error={"code": "server_error", "message": "broke"}),
        {"type": "error", "code": None, "message": "broke"},
    ],
)
def test_a_failure_is_raised(failure: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match="broke"):
        read(failure)


def test_a_stream_without_its_last_event_broke_off() -> None:
    with pytest.raises(EngineError, match="without its end"):
        read(event("output_text.delta", delta="x"))


@pytest.mark.parametrize(
    "event",
    [{"error": {"message": "broke"}}, {"error": "broke"}, {"object": "error", "message": "broke"}, {"detail": "broke"}],
)
def test_an_error_in_any_shape_inside_the_200_is_raised(event: dict[str, Any]) -> None:
    """Gateways and servers such as vLLM have one of their own for every route."""
    with pytest.raises(EngineError, match="broke"):
        ResponsesReader("rec_1").event("", event)
    with pytest.raises(EngineError, match="broke"):
        ResponsesReader("rec_1").whole(event)
