"""Answers in OpenAI's shape."""

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
from daemon.core.records import ChatRequest, Dialect, Sampling
from daemon.wire.base import dialect
from daemon.wire.sse import events
from tests.daemon.wire.answers import called, spoken, weighed

PLAIN = ChatRequest("m", ())


def streamed(script: list[EngineEvent], request: ChatRequest = PLAIN) -> list[Any]:
    renderer = dialect(Dialect.CHAT).renderer(request, "rec_123", "tiny", 1_700_000_000)
    stream = b"".join(renderer.event(event) for event in script) + renderer.finish()
    data = [text for _, text in events(stream)]
    assert data.pop() == "[DONE]"
    return [json.loads(text) for text in data]


def whole(script: list[EngineEvent], request: ChatRequest = PLAIN) -> Any:
    renderer = dialect(Dialect.CHAT).renderer(request, "rec_123", "tiny", 1_700_000_000)
    for event in script:
        renderer.event(event)
    return json.loads(renderer.body())


def deltas(script: list[EngineEvent]) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in streamed(script)]


def test_every_chunk_says_what_it_belongs_to() -> None:
    for chunk in streamed(spoken("a", "b")):
        assert chunk["id"] == "chatcmpl-123"
        assert chunk["object"] == "chat.completion.chunk"
        assert chunk["created"] == 1_700_000_000
        assert chunk["model"] == "tiny"
        assert chunk["choices"][0]["index"] == 0
        assert "usage" not in chunk


def test_the_role_comes_first_then_the_text_then_the_reason() -> None:
    chunks = streamed(spoken("Hello", " you"))
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hello"},
        {"content": " you"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]


def test_tool_calls_come_by_index_with_their_arguments_in_pieces() -> None:
    assert deltas(called())[1:-1] == [
        {
            "tool_calls": [
                {"index": 0, "id": "call_a", "type": "function", "function": {"name": "bash", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"command": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"ls"}'}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "call_b", "type": "function", "function": {"name": "bash", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"command": "pwd"}'}}]},
    ]


def test_an_empty_text_makes_no_chunk() -> None:
    assert deltas(spoken("", "a")) == deltas(spoken("a"))


def test_usage_comes_last_where_it_was_asked_for() -> None:
    chunks = streamed(spoken("a"), ChatRequest("m", (), include_usage=True))
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * 3
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 7,
        "total_tokens": 27,
        "prompt_tokens_details": {"cached_tokens": 12},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


@pytest.mark.parametrize(
    ("reason", "named"),
    [("stop", "stop"), ("stop_sequence", "stop"), ("length", "length"), ("tool_calls", "tool_calls")],
)
def test_reasons(reason: FinishReason, named: str) -> None:
    assert streamed(spoken("a", reason=reason))[-1]["choices"][0]["finish_reason"] == named
    assert whole(spoken("a", reason=reason))["choices"][0]["finish_reason"] == named


def test_a_body_holds_the_whole_answer() -> None:
    body = whole(spoken("Hello", " you"))
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hello you", "refusal": None}
    assert body["usage"]["total_tokens"] == 27


def test_a_body_with_calls_has_no_text_when_there_was_none() -> None:
    message = whole(called())["choices"][0]["message"]
    assert message["content"] is None
    assert message["tool_calls"] == [
        {"id": "call_a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"id": "call_b", "type": "function", "function": {"name": "bash", "arguments": '{"command": "pwd"}'}},
    ]


def test_logprobs_come_with_their_tokens_where_asked_for() -> None:
    asked = ChatRequest("m", (), sampling=Sampling(logprobs=True, top_logprobs=2))
    logprobs = [chunk["choices"][0]["logprobs"] for chunk in streamed(weighed(), asked)]
    content = [token for some in logprobs if some for token in some["content"]]
    assert content == whole(weighed(), asked)["choices"][0]["logprobs"]["content"]
    assert content[0] == {
        "token": "Hi",
        "logprob": -0.5,
        "bytes": [72, 105],
        "top_logprobs": [
            {"token": "Hi", "logprob": -0.5, "bytes": [72, 105]},
            {"token": "Ho", "logprob": -9999.0, "bytes": [72, 111]},
        ],
    }
    assert content[1]["bytes"] == [0xC3, 0xA9]


def test_logprobs_stay_away_where_nobody_asked() -> None:
    assert whole(weighed())["choices"][0]["logprobs"] is None
    assert all(chunk["choices"][0]["logprobs"] is None for chunk in streamed(weighed()))


def test_a_keepalive_is_a_chunk_that_says_nothing() -> None:
    renderer = dialect(Dialect.CHAT).renderer(PLAIN, "rec_1", "m", 1)
    renderer.event(Started(1, 0))
    [(_, data)] = events(renderer.keepalive())
    assert json.loads(data)["choices"][0]["delta"] == {}


def test_half_an_emoji_from_an_engine_can_still_be_written() -> None:
    renderer = dialect(Dialect.CHAT).renderer(PLAIN, "rec_1", "m", 1)
    assert b"\xef\xbf\xbd" in renderer.event(TextDelta("\ud83d"))


def test_thoughts_have_a_field_of_their_own() -> None:
    script: list[EngineEvent] = [Started(20, 12), ThinkingDelta("hm"), ThinkingEnd("anthropic:x"), *spoken("yes")[1:]]
    assert {"reasoning_content": "hm"} in deltas(script)
    message = whole(script)["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("hm", "yes")


def test_a_refusal_is_no_content_and_ends_as_openais_do() -> None:
    script: list[EngineEvent] = [Started(20, 12), RefusalDelta("I cannot"), *spoken(reason="refusal")[1:]]
    choice = whole(script)["choices"][0]
    assert (choice["message"]["refusal"], choice["message"]["content"], choice["finish_reason"]) == (
        "I cannot", None, "stop",
    )  # fmt: skip
    assert whole(spoken("I", reason="refusal"))["choices"][0]["finish_reason"] == "content_filter"
