"""Answers in the shape of OpenAI's Responses: every event that its clients wait for, in its order."""

import json
from typing import Any

import pytest

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
from daemon.core.records import ChatRequest, Dialect, Tool
from daemon.wire.answer import assemble
from daemon.wire.base import Renderer, dialect
from daemon.wire.responses_answer import ResponsesAssembler
from daemon.wire.sse import events
from tests.daemon.wire.answers import USAGE, called, spoken

PATCH = Tool("apply_patch", "", {}, custom=True)
CLOSE = Tool("agents__close", "", {}, namespace="agents")
START, END = Started(20, 12), Finished("stop", USAGE)


def renderer() -> Renderer:
    request = ChatRequest("m", (), tools=(PATCH, CLOSE))
    return dialect(Dialect.RESPONSES).renderer(request, "rec_123", "tiny", 1_700_000_000)


def raw(script: list[EngineEvent]) -> bytes:
    answer = renderer()
    return b"".join(answer.event(event) for event in script) + answer.finish()


def streamed(script: list[EngineEvent]) -> list[Any]:
    found = []
    for number, (name, data) in enumerate(events(raw(script))):
        value = json.loads(data)
        assert (value["type"], value["sequence_number"]) == (name, number)
        found.append(value)
    return found


def whole(script: list[EngineEvent]) -> Any:
    answer = renderer()
    for event in script:
        answer.event(event)
    return json.loads(answer.body())


def kinds(script: list[EngineEvent]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in streamed(script)]


def test_words_are_announced_filled_and_closed_in_order() -> None:
    assert kinds(spoken("Hello", " you")) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_calls_are_announced_filled_and_closed_in_order() -> None:
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    found = kinds(called())
    assert found[2:7] == [*call[:2], *call[1:]]
    assert found[7:11] == call


def test_thoughts_come_as_a_summary_and_carry_their_seal() -> None:
    script: list[EngineEvent] = [START, ThinkingDelta("hm"), ThinkingEnd("anthropic:c2ln"), TextDelta("yes"), END]
    assert kinds(script)[2:8] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    thought = streamed(script)[-1]["response"]["output"][0]
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert thought["encrypted_content"] == "anthropic:c2ln"


def test_a_thought_without_words_is_still_sent_back() -> None:
    (item, *_) = whole([START, ThinkingEnd("anthropic-redacted:x"), TextDelta("yes"), END])["output"]
    assert (item["type"], item["summary"], item["encrypted_content"]) == ("reasoning", [], "anthropic-redacted:x")


def test_a_refusal_is_a_part_of_its_own() -> None:
    script: list[EngineEvent] = [START, TextDelta("Well."), RefusalDelta("I cannot"), Finished("refusal", USAGE)]
    assert [part["type"] for part in whole(script)["output"][0]["content"]] == ["output_text", "refusal"]
    assert kinds(script)[-1] == "completed"
    places = [event["content_index"] for event in streamed(script) if event["type"].endswith(".delta")]
    assert places == [0, 1]


def test_free_text_for_a_tool_streams_out_of_its_argument() -> None:
    pieces = ['{"inp', 'ut": "*** Be', "gin\\", 'n\\u00e4 \\"q\\""}']
    script: list[EngineEvent] = [START, ToolStart(0, "c1", "apply_patch")]
    script += [ToolArguments(0, piece) for piece in pieces]
    told = streamed([*script, Finished("tool_calls", USAGE)])
    deltas = [event["delta"] for event in told if event["type"] == "response.custom_tool_call_input.delta"]
    assert deltas == ["*** Be", "gin", '\nä "q"']
    (item,) = told[-1]["response"]["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", '*** Begin\nä "q"')


def test_free_text_with_half_an_emoji_does_not_break_the_stream() -> None:
    script: list[EngineEvent] = [START, ToolStart(0, "c1", "apply_patch"), ToolArguments(0, '{"input": "a\\udc1f b"}')]
    (item,) = whole([*script, Finished("tool_calls", USAGE)])["output"]
    assert item["input"] == "a\ufffd b"


def test_free_text_that_is_no_argument_is_told_as_it_was_written() -> None:
    script: list[EngineEvent] = [START, ToolStart(0, "c1", "apply_patch"), ToolArguments(0, "*** Begin")]
    (item,) = whole([*script, Finished("tool_calls", USAGE)])["output"]
    assert item["input"] == "*** Begin"


def test_a_tool_in_a_namespace_is_called_by_both_names() -> None:
    (item,) = whole([START, ToolStart(0, "c1", "agents__close"), ToolArguments(0, "{}"), END])["output"]
    assert (item["namespace"], item["name"], item["call_id"]) == ("agents", "close", "c1")


def test_a_whole_answer_is_the_streams_last_event() -> None:
    script = called(text="Look:")
    assert whole(script) == streamed(script)[-1]["response"]
    assert [item["type"] for item in whole(script)["output"]] == ["message", "function_call", "function_call"]


def test_usage_comes_at_the_end() -> None:
    usage = whole(spoken("Hi"))["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (20, 7, 27)
    assert usage["input_tokens_details"] == {"cached_tokens": 12}
    assert streamed(spoken("Hi"))[0]["response"]["usage"] is None


@pytest.mark.parametrize(("reason", "told"), [("length", "max_output_tokens"), ("refusal", "content_filter")])
def test_an_answer_that_was_cut_off_is_incomplete(reason: Any, told: str) -> None:
    last = streamed(spoken("Hi", reason=reason))[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": told}


def test_a_failure_is_told_of_the_same_response() -> None:
    answer = renderer()
    first = answer.event(START)
    failed = json.loads(next(iter(events(answer.error(502, "engine_error", "it broke"))))[1])
    assert failed["type"] == "response.failed"
    assert failed["response"]["id"] == json.loads(next(iter(events(first)))[1])["response"]["id"] == "resp_123"
    assert failed["response"]["error"] == {"code": "server_error", "message": "it broke"}


def test_a_keepalive_is_an_event_without_meaning() -> None:
    answer = renderer()
    answer.event(START)
    assert json.loads(next(iter(events(answer.keepalive())))[1]) == {"type": "keepalive", "sequence_number": 2}


def test_half_an_emoji_does_not_break_the_stream() -> None:
    assert whole(spoken("a\ud83d"))["output"][0]["content"][0]["text"] == "a\ufffd"


@pytest.mark.parametrize("script", [spoken("Hello"), called(text="Look:")], ids=["words", "calls"])
def test_our_own_reader_reads_it_back(script: list[EngineEvent]) -> None:
    streamed_back = assemble(ResponsesAssembler(), raw(script), True)
    assert streamed_back.message == whole(script)["output"]
    assert streamed_back.usage == USAGE
