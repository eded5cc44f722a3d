"""Chat answers as events, whatever compatible servers make of them."""

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
from daemon.wire.chat_reader import ChatReader

COVERS = ("daemon/wire/chat_calls.py",)


def read(*deltas: dict[str, Any], reason: str | None = "stop", **more: Any) -> list[EngineEvent]:
    reader = ChatReader("rec_1")
    events: list[EngineEvent] = []
    for delta in deltas:
        events += reader.event("", {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    events += reader.event("", {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more})
    return [*events, *reader.end()]


def call(index: int | None, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


def calls(events: list[EngineEvent]) -> list[tuple[str, str, str]]:
    found: dict[int, tuple[str, str, str]] = {}
    for event in events:
        if isinstance(event, ToolStart):
            found[event.index] = (event.id, event.name, "")
        elif isinstance(event, ToolArguments):
            id, name, text = found[event.index]
            found[event.index] = (id, name, text + event.text)
    return list(found.values())


def test_words_thoughts_and_their_end() -> None:
    assert read({"role": "assistant", "content": ""}, {"reasoning_content": "hm"}, {"content": "yes"}) == [
        Started(0, 0),
        ThinkingDelta("hm"),
        ThinkingEnd("chat:"),
        TextDelta("yes"),
        Finished("stop", Usage()),
    ]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_a_thought_with_nothing_after_it_ends_too(field: str) -> None:
    assert read({field: "hm"})[-2] == ThinkingEnd("chat:")


def test_two_calls_both_at_index_0_are_two() -> None:
    events = read(call(0, "a", "x", '{"n":1}'), call(0, "b", "y", '{"n":2}'), reason="tool_calls")
    assert calls(events) == [("a", "x", '{"n":1}'), ("b", "y", '{"n":2}')]


def test_fragments_with_new_ids_are_one_call() -> None:
    events = read(call(0, "a", "x", '{"n"'), call(0, "b", None, ":1}"), reason="tool_calls")
    assert calls(events) == [("a", "x", '{"n":1}')]


def test_arguments_as_an_object_and_a_wrong_reason_are_a_call() -> None:
    """https://github.com/BerriAI/litellm/pull/37792"""
    events = read(call(None, "a", "x", {"n": 1}), reason="stop")
    assert calls(events) == [("a", "x", '{"n":1}')]
    assert events[-1] == Finished("tool_calls", Usage())


def test_a_refusal_is_told_as_one() -> None:
    assert read({"refusal": "no"})[1] == RefusalDelta("no")


def test_usage_in_a_chunk_without_choices_counts() -> None:
    reader = ChatReader("rec_1")
    reader.event("", {"choices": [{"delta": {"content": "x"}, "finish_reason": "length"}]})
    reader.event("", {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
    assert reader.end() == [Finished("length", Usage(prompt=5, completion=2))]


def test_a_whole_answer_is_read_like_one_chunk() -> None:
    reader = ChatReader("rec_1")
    message = {"role": "assistant", "content": "yes", "tool_calls": call(None, "a", "x", "{}")["tool_calls"]}
    events = reader.whole({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    assert events[1] == TextDelta("yes")
    assert calls([*events, *reader.end()]) == [("a", "x", "{}")]


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "broke"}},
        {"object": "error", "message": "broke"},
        {"detail": "broke"},
        {"error": "broke"},
        {"id": "g", "error": {"message": "broke"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]},
        {"choices": [{"delta": {}, "finish_reason": "error"}]},
    ],
)
def test_an_error_inside_the_200_is_raised(event: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match="broke"):
        ChatReader("rec_1").event("", event)


def test_a_stream_without_a_reason_to_stop_broke_off() -> None:
    with pytest.raises(EngineError, match="without its end"):
        read({"content": "x"}, reason=None)
