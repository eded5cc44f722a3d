"""Answers of the Responses dialect, put together from a body or from events, finished or not."""

import json
from typing import Any

import pytest

from daemon.core.records import Usage
from daemon.wire.answer import Answer, assemble
from daemon.wire.responses_answer import ResponsesAssembler

TEXT = {"type": "output_text", "text": "Hello", "annotations": []}
WORDS = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"a":1}'}
USAGE = {
    "input_tokens": 20,
    "output_tokens": 7,
    "input_tokens_details": {"cached_tokens": 12},
    "output_tokens_details": {"reasoning_tokens": 3},
}


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "m-1", "status": status, "output": [], **fields}


def stream(*events: dict[str, Any]) -> Answer:
    raw = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
    return assemble(ResponsesAssembler(), raw, True)


def whole(body: dict[str, Any]) -> Answer:
    return assemble(ResponsesAssembler(), json.dumps(body).encode(), False)


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int, text: str, **place: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **place}


def test_a_whole_answer() -> None:
    answer = whole(response(output=[WORDS, CALL], usage=USAGE))
    assert answer.message == [WORDS, CALL]
    assert answer.usage == Usage(prompt=20, completion=7, cached=12, reasoning=3)
    assert (answer.stop_reason, answer.model, answer.problem) == ("completed", "m-1", None)


def test_a_streamed_answer_is_its_items() -> None:
    answer = stream(
        {"type": "response.created", "response": response("in_progress")},
        added(0, {**WORDS, "content": []}),
        delta("output_text", 0, "Hel", content_index=0),
        delta("output_text", 0, "lo", content_index=0),
        done(0, WORDS),
        added(1, {**CALL, "arguments": ""}),
        done(1, CALL),
        {"type": "response.completed", "response": response(output=[WORDS, CALL], usage=USAGE)},
    )
    assert answer.message == [WORDS, CALL]
    assert answer.usage.completion == 7


def test_a_last_event_that_leaves_the_items_out_takes_nothing_away() -> None:
    answer = stream(done(0, WORDS), {"type": "response.completed", "response": response()})
    assert answer.message == [WORDS]


def test_what_was_broken_off_is_kept_as_far_as_it_came() -> None:
    answer = stream(
        added(0, {"id": "rs_1", "type": "reasoning", "summary": []}),
        delta("reasoning_summary_text", 0, "first", summary_index=0),
        delta("reasoning_summary_text", 0, "second", summary_index=1),
        done(1, WORDS),
        added(2, {**CALL, "arguments": ""}),
        delta("function_call_arguments", 2, '{"a"'),
    )
    assert isinstance(answer.message, list)
    assert [part["text"] for part in answer.message[0]["summary"]] == ["first", "second"]
    assert answer.message[1] == WORDS
    assert answer.message[2]["arguments"] == '{"a"'
    assert answer.stop_reason is None


def test_deltas_of_an_item_that_nobody_announced_are_kept() -> None:
    answer = stream(delta("output_text", 0, "Hello", content_index=0))
    assert answer.message == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
    ]


def test_free_text_for_a_tool_is_put_together() -> None:
    answer = stream(
        added(0, {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": ""}),
        delta("custom_tool_call_input", 0, "*** "),
        delta("custom_tool_call_input", 0, "Begin"),
    )
    assert isinstance(answer.message, list)
    assert answer.message[0]["input"] == "*** Begin"


def test_an_answer_that_was_cut_off_says_why() -> None:
    cut = response("incomplete", incomplete_details={"reason": "max_output_tokens"}, output=[WORDS])
    assert stream({"type": "response.incomplete", "response": cut}).stop_reason == "max_output_tokens"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.failed", "response": response("failed", error={"code": "server_error", "message": "broke"})},
        {"type": "error", "code": None, "message": "broke", "param": None},
        {"type": "error", "error": {"type": "server_error", "message": "broke"}},
        {"type": "", "object": "error", "message": "broke"},
        {"type": "", "detail": "broke"},
        {"type": "", "error": "broke"},
    ],
)
def test_a_failure_inside_the_200_is_a_problem(event: dict[str, Any]) -> None:
    assert stream(event).problem == "the provider reported: broke"


def test_an_error_as_a_body_is_a_problem() -> None:
    assert whole({"error": {"message": "broke"}}).problem == "the provider reported: broke"
    assert whole({"detail": "broke"}).problem == "the provider reported: broke"


def test_what_a_gateway_says_it_cost_is_kept() -> None:
    assert whole(response(output=[WORDS], usage={**USAGE, "cost": 0.25})).usage.cost == 0.25


@pytest.mark.parametrize("usage", [{}, {"input_tokens": None, "input_tokens_details": None}, {"input_tokens": -1}, 3])
def test_usage_with_holes_counts_as_nothing(usage: Any) -> None:
    assert whole(response(output=[WORDS], usage=usage)).usage == Usage()
