"""Errors of the Responses dialect, before a stream and inside one that nothing of ours began."""

import json

import pytest

from daemon.core.errors import ContextOverflow
from daemon.wire.responses import Responses
from daemon.wire.sse import events


def test_an_error_is_openais() -> None:
    error = json.loads(Responses().error(404, "not_found", "no such model"))["error"]
    assert (error["type"], error["code"], error["message"]) == ("not_found_error", "not_found", "no such model")


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "rate_limit_exceeded"), (503, "server_is_overloaded"), (400, "invalid_prompt"), (502, "server_error")],
)
def test_a_failure_inside_a_stream_is_a_failed_response_with_a_code_that_codex_knows(status: int, code: str) -> None:
    ((name, data),) = events(Responses().error_event(status, "engine_error", "it broke"))
    assert name == "response.failed"
    assert json.loads(data)["response"]["error"] == {"code": code, "message": "it broke"}


def test_a_prompt_too_long_is_told_by_code_and_counts() -> None:
    error = ContextOverflow(9000, 8192)
    ((_, data),) = events(Responses().error_event(error.status, error.kind, error.message))
    told = json.loads(data)["response"]["error"]
    assert told["code"] == "context_length_exceeded"
    assert "8192" in told["message"]
