"""Chat answers put together from whatever OpenAI-compatible servers send."""

import json
import time
from typing import Any

import pytest

from daemon.core.records import Dialect, Transcript, Usage
from daemon.wire.base import dialect

CODEC = dialect(Dialect.CHAT)


def recorded(response: bytes, *, stream: bool = True) -> Transcript:
    return CODEC.transcript(b"", response, stream=stream, redact=lambda raw: (raw, 0))


def sse(*chunks: Any, done: bool = True) -> bytes:
    body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return body + b"data: [DONE]\n\n" if done else body


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"model": "tiny", "choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def call(index: int, arguments: Any, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return delta(tool_calls=[{"index": index, **({"id": id} if id else {}), "function": function}])


def message(response: bytes, *, stream: bool = True) -> Any:
    answer = recorded(response, stream=stream).answer
    assert answer is not None
    return json.loads(answer.raw)


def calls(response: bytes) -> list[tuple[str, str, str]]:
    found = message(response)["tool_calls"]
    return [(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in found]


def test_a_stream_becomes_the_message_an_agent_sends_back() -> None:
    response = sse(delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop"))
    assert message(response) == {"role": "assistant", "content": "Hello"}
    found = recorded(response)
    assert (found.stop_reason, found.model, found.note) == ("stop", "tiny", None)


def test_a_body_becomes_the_same_message() -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "Hello", "refusal": None}}]}
    assert message(json.dumps(body).encode(), stream=False) == {"role": "assistant", "content": "Hello"}


def test_calls_are_joined_by_index() -> None:
    response = sse(
        call(0, "", "a", "bash"), call(0, '{"c":'), call(1, "", "b", "bash"), call(1, '{"c":2}'), call(0, "1}")
    )
    assert calls(response) == [("a", "bash", '{"c":1}'), ("b", "bash", '{"c":2}')]
    assert message(response)["content"] is None


def test_parallel_calls_that_all_have_index_0_stay_apart() -> None:
    """BUGS B014."""
    response = sse(call(0, '{"c":1}', "a", "bash"), call(0, '{"c":2}', "b", "bash"))
    assert calls(response) == [("a", "bash", '{"c":1}'), ("b", "bash", '{"c":2}')]


def test_one_call_whose_fragments_have_new_ids_is_one_call() -> None:
    """BUGS B016."""
    assert calls(sse(call(0, '{"c":', "a", "bash"), call(0, "1", "b"), call(0, "}", "c", "bash"))) == [
        ("a", "bash", '{"c":1}')
    ]


def test_calls_without_an_index_are_told_apart_by_their_place() -> None:
    pieces = [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in ("a", "b")]
    assert calls(sse(delta(tool_calls=pieces))) == [("a", "f", "{}"), ("b", "f", "{}")]


def test_arguments_sent_as_an_object_become_text() -> None:
    """BUGS B017."""
    assert calls(sse(call(0, {"a": 1}, "a", "f"), delta("stop"))) == [("a", "f", '{"a":1}')]


def test_of_concatenated_arguments_the_last_object_counts() -> None:
    assert calls(sse(call(0, "{}", "a", "f"), call(0, '{"a":1}')))[0][2] == '{"a":1}'


@pytest.mark.parametrize(
    ("written", "whole"),
    [('{"a": "two\nlines"}', True), (r'{"a": "\d"}', False), ('{"a": ', False), ("not json", False)],
)
def test_arguments_that_are_no_json_are_kept_as_written_and_noted(written: str, whole: bool) -> None:
    """Also where the provider says that it stopped by itself: a call cut off must not be taken for what was meant."""
    response = sse(call(0, written, "a", "f"), delta("stop"))
    assert calls(response)[0][2] == written
    assert recorded(response).note == (None if whole else "the arguments of a call are no whole JSON object")


def test_a_legacy_function_call_is_a_call() -> None:
    response = sse(delta(function_call={"name": "f", "arguments": ""}), delta(function_call={"arguments": "{}"}))
    assert calls(response) == [("", "f", "{}")]


def test_reasoning_and_refusals_are_kept() -> None:
    response = sse(delta(reasoning_content="hm"), delta(reasoning_content="m"), delta(refusal="no"))
    assert message(response) == {"role": "assistant", "content": None, "refusal": "no", "reasoning_content": "hmm"}


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}, {"type": "text", "text": "b"}]
    assert message(sse(delta(content=parts)))["content"] == "ab"


def test_only_the_first_choice_is_the_answer() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "B"}}]}
    assert message(sse(delta(content="A"), second))["content"] == "A"


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@pytest.mark.parametrize("start", ["data: ", "data:"])
def test_any_framing_is_read(start: str, end: str) -> None:
    text = f": PROCESSING{end}{start}" + json.dumps(delta(content="阴气 😀"), ensure_ascii=False) + end
    assert message(text.encode())["content"] == "阴气 😀"


def test_an_answer_broken_off_inside_an_event_is_kept_as_far_as_it_came() -> None:
    response = sse(delta(content="Hello "), delta(content="you"), done=False)[:-30]
    found = recorded(response)
    assert message(response)["content"] == "Hello "
    assert found.stop_reason is None
    assert found.note == "an event of the response is not JSON"


def test_a_stream_without_done_is_read_to_its_end() -> None:
    assert recorded(sse(delta(content="a"), delta("length"), done=False)).stop_reason == "length"


def test_usage_is_read_from_its_own_chunk_with_nulls_and_details() -> None:
    """BUGS B024."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": None},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    nothing: dict[str, Any] = {"choices": [], "usage": None}
    assert recorded(sse(delta(content="a"), nothing, {"choices": [], "usage": usage})).usage == Usage(10, 4, 8, 2)


@pytest.mark.parametrize(
    ("told", "cost"),
    [
        ({"cost": 0.0125}, 0.0125),
        ({"cost": 0}, 0.0),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, 0.021),
        ({"cost": 0.001, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, 0.001),
        ({"cost": 0.001, "is_byok": True, "cost_details": None}, 0.001),
        ({"cost": "0.1"}, None),
        ({"cost": True}, None),
        ({"cost": -1}, None),
        ({"cost": 1e300}, None),
        ({}, None),
    ],
)
def test_what_a_gateway_says_it_cost_is_kept(told: dict[str, Any], cost: float | None) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, **told}
    assert recorded(sse(delta(content="a"), {"choices": [], "usage": usage})).usage.cost == cost


@pytest.mark.parametrize(
    "usage",
    [{}, {"prompt_tokens": None, "prompt_tokens_details": None}, {"prompt_tokens": "9", "completion_tokens": -1}],
)
def test_usage_that_says_nothing_counts_nothing(usage: dict[str, Any]) -> None:
    assert recorded(sse(delta(content="a"), {"choices": None, "usage": usage})).usage == Usage()


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "too long", "code": 400}},
        {"error": "too long"},
        {"object": "error", "message": "too long"},
        {"detail": "too long"},
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_error_inside_a_200_is_noted(event: dict[str, Any], stream: bool) -> None:
    found = recorded(sse(event) if stream else json.dumps(event).encode(), stream=stream)
    assert found.answer is None
    assert found.note == "the provider reported: too long"


def test_a_null_error_is_no_error() -> None:
    assert message(sse({"error": None, **delta(content="a")}))["content"] == "a"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"text"', b"\xff\xfe", b"data: {\n\n", b"data: 3\n\n"])
def test_what_is_no_answer_is_no_answer(body: bytes) -> None:
    for stream in (True, False):
        found = recorded(body, stream=stream)
        assert found.answer is None
        assert found.response == body


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": "x"},
        {"choices": ["x"]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"tool_calls": "x", "content": 3}}]},
        {"choices": [{"delta": {"tool_calls": ["x"]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": "x"}]}}]},
        {"model": 3, "usage": "x", "choices": [{"finish_reason": 3}]},
    ],
)
def test_odd_chunks_never_stop_the_recording(chunk: dict[str, Any]) -> None:
    assert message(sse(chunk, delta(content="a")))["content"] == "a"


def test_an_unasked_stream_is_read_as_one() -> None:
    assert message(sse(delta(content="a")), stream=False)["content"] == "a"


def test_an_unasked_body_is_read_as_one() -> None:
    body = json.dumps({"choices": [{"message": {"content": "a"}}]}).encode()
    assert message(body, stream=True)["content"] == "a"


def test_an_answer_in_very_many_pieces_is_read_in_linear_time() -> None:
    renamed = [call(0, '{\\"a' if not n else "aaaaaaaa", f"id{n}", "bash") for n in range(8_000)]
    begun = time.monotonic()
    assert len(calls(sse(*renamed))) == 1
    assert len(calls(sse(*(call(n, "{}", f"id{n}", "bash") for n in range(8_000))))) == 8_000
    assert time.monotonic() - begun < 10  # seconds; minutes before


def test_a_count_that_no_exchange_can_have_is_none() -> None:
    found = recorded(sse({"choices": [], "usage": {"prompt_tokens": 2**63 - 1, "completion_tokens": 3}}))
    assert (found.usage.prompt, found.usage.completion) == (0, 3)
