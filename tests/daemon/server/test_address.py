"""Addresses that say what headers would: for agents that can set only a base URL."""

import base64
import json
from typing import Any

import pytest

from daemon.core.errors import UsageError
from daemon.server import address


def fields(said: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


def taken(path: str, *headers: tuple[bytes, bytes]) -> tuple[str | None, dict[str, Any]]:
    scope: dict[str, Any] = {"path": path, "raw_path": path.encode(), "headers": list(headers)}
    return address.take_token(scope), scope


def test_a_path_of_reefs_own_is_left_alone() -> None:
    token, scope = taken("/v1/models")
    assert (token, scope["path"], scope["headers"]) == (None, "/v1/models", [])


def test_a_token() -> None:
    token, scope = taken("/t/abc/v1/x%20y")
    assert (token, scope["path"], scope["raw_path"]) == ("abc", "/v1/x%20y", b"/v1/x%20y")


def test_what_a_wrapper_knows() -> None:
    told = {"x-reef-adapter": "aider", "x-reef-scenario": "work", "x-reef-tag-run": "run_1"}
    token, scope = taken(f"/t/abc/x/{fields(told)}/v1/chat", (b"x-reef-scenario", b"mine"))
    assert (token, scope["path"], scope["raw_path"]) == ("abc", "/v1/chat", b"/v1/chat")
    found = {name.decode(): value.decode() for name, value in scope["headers"]}
    assert found == told | {"x-reef-scenario": "mine"}


@pytest.mark.parametrize(
    "said",
    [
        [], 1, {"x-reef-token": "x"}, {"authorization": "x"}, {"host": "x"}, {"x-reef-cwd": 1},
        {"x-reef-cwd": "a\r\nb: c"},
        {"x-reef-cwd": "\u00fc"}, {f"x-reef-tag-{number}": "x" for number in range(33)},
    ],
)  # fmt: skip
def test_what_is_no_field(said: Any) -> None:
    with pytest.raises(UsageError, match="says nothing"):
        taken(f"/t/abc/x/{fields(said)}/v1/chat")


@pytest.mark.parametrize("text", ["", "%", "a", "e30", "\u00fc"])
def test_what_is_none_at_all(text: str) -> None:
    if text == "e30":  # {}
        assert taken(f"/t/abc/x/{text}/v1/chat")[1]["path"] == "/v1/chat"
        return
    with pytest.raises(UsageError):
        taken(f"/t/abc/x/{text}/v1/chat")
