"""Errors as each vendor words them, so that agents act on them."""

import json

import pytest

from daemon.core.errors import ContextOverflow, ReefError
from daemon.core.records import Dialect
from daemon.wire.base import dialect
from daemon.wire.sse import Relay, events

CHAT, MESSAGES = dialect(Dialect.CHAT), dialect(Dialect.MESSAGES)
OVERFLOW = ContextOverflow(9000, 8192)


def test_openais_shape() -> None:
    assert json.loads(CHAT.error(400, "invalid_request", "stop: expected a string")) == {
        "error": {
            "message": "stop: expected a string",
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_request",
        }
    }


def test_anthropics_shape() -> None:
    assert json.loads(MESSAGES.error(400, "invalid_request", "stop: expected a string")) == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "stop: expected a string"},
        "request_id": None,
    }


@pytest.mark.parametrize(
    ("status", "chat", "messages"),
    [
        (401, "authentication_error", "authentication_error"),
        (403, "permission_error", "permission_error"),
        (404, "not_found_error", "not_found_error"),
        (413, "invalid_request_error", "request_too_large"),
        (429, "rate_limit_error", "rate_limit_error"),
        (500, "server_error", "api_error"),
        (502, "server_error", "api_error"),
        (503, "server_error", "overloaded_error"),
        (529, "server_error", "overloaded_error"),
    ],
)
def test_types_by_status(status: int, chat: str, messages: str) -> None:
    assert json.loads(CHAT.error(status, "k", "m"))["error"]["type"] == chat
    assert json.loads(MESSAGES.error(status, "k", "m"))["error"]["type"] == messages


def _sent(dialect_name: Dialect, error: ReefError) -> dict[str, str]:
    body = json.loads(dialect(dialect_name).error(error.status, error.kind, error.message))
    found: dict[str, str] = body["error"]
    return found


def test_openai_clients_recognise_a_prompt_that_is_too_long() -> None:
    error = _sent(Dialect.CHAT, OVERFLOW)
    assert error["code"] == "context_length_exceeded"
    assert error["type"] == "invalid_request_error"
    assert "maximum context length is 8192 tokens" in error["message"]
    assert "9000 tokens" in error["message"]


def test_anthropic_clients_recognise_a_prompt_that_is_too_long() -> None:
    error = _sent(Dialect.MESSAGES, OVERFLOW)
    assert error["type"] == "invalid_request_error"
    assert error["message"] == "prompt is too long: 9000 tokens > 8192 maximum"


@pytest.mark.parametrize("codec", [CHAT, MESSAGES])
def test_an_error_inside_a_stream_is_its_last_event(codec: object) -> None:
    event = (CHAT if codec is CHAT else MESSAGES).error_event(502, "engine_error", "it broke")
    [(name, data)] = events(event)
    assert name == ("" if codec is CHAT else "error")
    assert json.loads(data)["error"]["message"] == "it broke"
    relay = Relay()
    assert relay.feed(event) == b""
    assert relay.failed


@pytest.mark.parametrize("codec", [CHAT, MESSAGES])
def test_an_error_may_quote_half_an_emoji(codec: object) -> None:
    body = (CHAT if codec is CHAT else MESSAGES).error(400, "k", "got \ud83d")
    assert json.loads(body)["error"]["message"] == "got \ufffd"
