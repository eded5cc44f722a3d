"""Spans as the GenAI conventions have them, and trace context as W3C has it."""

from dataclasses import replace
from typing import Any

import pytest

from daemon.core.records import Appended, End, Image, Kind, Message, Text, Thinking, ToolResult, ToolUse, Usage
from daemon.server import otlp
from tests.fakes.collector import plain
from tests.fakes.exchanges import exchange, transcript, user

TRACE, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ONE = exchange(transcript([user("hello")]), stream=True, model_asked="m-large", duration_us=2_000, agent="OpenAI")
STORED = Appended(
    ONE.receipt, "ses_1", Kind.MAIN, 1, Usage(prompt=10, completion=5, cached=8), "m-large-1", "stop", "hermes",
    "r1-0123abcd",
)  # fmt: skip


def made(**changes: Any) -> dict[str, Any]:
    found = otlp.span(replace(ONE, **changes), STORED, "openai", str)
    assert found is not None
    return {**found, "attributes": plain(found["attributes"])}


def test_a_span_says_what_the_conventions_ask_for() -> None:
    span = made()
    assert (span["name"], span["kind"], span["status"]) == ("chat m-large", 3, {})
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 2_000_000
    told = span["attributes"]
    assert {key: told[key] for key in told if key.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m-large",
        "gen_ai.request.stream": True, "gen_ai.response.model": "m-large-1",
        "gen_ai.response.finish_reasons": ["stop"], "gen_ai.response.time_to_first_chunk": 0.0001,
        "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 8,
        "gen_ai.conversation.id": "ses_1", "gen_ai.agent.name": "hermes",
    }  # fmt: skip
    assert (told["reef.receipt"], told["reef.release_id"]) == (ONE.receipt, "r1-0123abcd")  # as it is counted
    assert "error.type" not in told


@pytest.mark.parametrize(
    ("end", "status", "kind"),
    [(End.ERROR, 429, "429"), (End.INCOMPLETE, 200, "incomplete"), (End.CANCELLED, 200, "cancelled")],
)
def test_what_went_wrong_is_an_error_with_few_kinds(end: End, status: int, kind: str) -> None:
    span = made(end=end, status=status, error="it broke off")
    assert span["status"] == {"code": 2, "message": "it broke off"}
    assert span["attributes"]["error.type"] == kind


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/v1/chat/completions", "chat"), ("/v1/messages", "chat"), ("/v1/responses", "chat"),
        ("/v1/completions", "text_completion"), ("/v1/embeddings", "embeddings"),
    ],
)  # fmt: skip
def test_the_operation_is_the_routes(path: str, operation: str) -> None:
    assert made(path=path)["attributes"]["gen_ai.operation.name"] == operation


def test_the_callers_span_becomes_the_parent() -> None:
    span = made(traceparent=f"00-{TRACE}-{ABOVE}-01")
    assert (span["traceId"], span["parentSpanId"]) == (TRACE, ABOVE)


def test_a_caller_that_is_not_sampled_gets_no_span() -> None:
    assert otlp.span(replace(ONE, traceparent=f"00-{TRACE}-{ABOVE}-00"), STORED, "openai", str) is None


@pytest.mark.parametrize(
    "given",
    [
        None, "", "nonsense", f"00-{'0' * 32}-{ABOVE}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{ABOVE}-01",
        f"00-{TRACE.upper()}-{ABOVE}-01", f"00-{TRACE}-{ABOVE}", f"00-{TRACE}-{ABOVE}-01\r\nx: y",
    ],
)  # fmt: skip
def test_nonsense_as_context_begins_a_new_trace(given: str | None) -> None:
    span = made(traceparent=given)
    assert len(span["traceId"]) == 32
    assert span["traceId"] != TRACE
    assert "parentSpanId" not in span


def test_what_was_said_has_the_conventions_parts() -> None:
    messages = [
        Message("user", (Text("look"), Image("image/png", "sha256:00"))),
        Message("assistant", (Thinking("hm"), ToolUse("c1", "bash", '{"command":"ls"}'))),
        Message("tool", (ToolResult("c1", "a.txt"),)),
    ]
    told = plain(otlp.said(messages, Message("assistant", (Text("done"),)), "stop"))
    assert '"type": "tool_call", "id": "c1", "name": "bash"' in told["gen_ai.input.messages"]
    assert '"type": "tool_call_response", "id": "c1", "response": "a.txt"' in told["gen_ai.input.messages"]
    assert told["gen_ai.output.messages"] == (
        '[{"role": "assistant", "parts": [{"type": "text", "content": "done"}], "finish_reason": "stop"}]'
    )
