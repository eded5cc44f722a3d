"""An agent's side of the daemon: one prompt over TCP with the agent token, streamed, in either dialect.

The demo's client, written on the standard library to show that nothing of Reef's is needed to use Reef.
"""

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from daemon.core.errors import EngineError, Unreachable
from daemon.core.ids import new_id

Dialect = Literal["chat", "messages"]

RECEIPT = "x-reef-agent-record-id"
RELEASE = "x-reef-release-id"
_PATHS: dict[Dialect, str] = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
#: A model may be loading, and a small machine reads slowly.
_SILENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    receipt: str
    text: str
    release: str


def path_of(dialect: Dialect) -> str:
    return _PATHS[dialect]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Where to ask, and as whom. ``url`` is the daemon's, without ``/v1``."""

    url: str
    token: str
    scenario: str

    def ask(self, dialect: Dialect, prompt: str, *, max_tokens: int, on_text: Callable[[str], None]) -> Answer:
        """Stream the answer piece by piece into ``on_text``. Raises EngineError with the daemon's words."""
        body = {
            "model": "default",
            "stream": True,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": prompt}],
        }
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_SILENCE_SECONDS)
        try:
            connection.request("POST", _PATHS[dialect], json.dumps(body), self._headers(dialect))
            response = connection.getresponse()
            if response.status != 200:
                raise EngineError(_message(response.read(), response.status), hint="reef logs")
            pieces: list[str] = []
            for piece in _texts(dialect, response):
                pieces.append(piece)
                on_text(piece)
            return Answer(response.getheader(RECEIPT, ""), "".join(pieces), response.getheader(RELEASE, ""))
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.url} broke off: {error!r}", hint="reef logs") from error
        finally:
            connection.close()

    def _headers(self, dialect: Dialect) -> dict[str, str]:
        key = {"Authorization": f"Bearer {self.token}"} if dialect == "chat" else {"x-api-key": self.token}
        return {
            **key,
            "Content-Type": "application/json",
            "User-Agent": "reef-demo/1",
            "anthropic-version": "2023-06-01",
            "x-reef-scenario": self.scenario,
            "x-reef-session-id": new_id("req"),  # the same words asked again are a conversation of their own
        }


def _message(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}: {body[:200].decode(errors='replace')}"


def _texts(dialect: Dialect, response: http.client.HTTPResponse) -> Iterator[str]:
    for line in response:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data == b"[DONE]":
            continue
        event = json.loads(data)
        if "error" in event:
            raise EngineError(str(event["error"].get("message")), hint="reef logs")
        text = _chat_text(event) if dialect == "chat" else _messages_text(event)
        if text:
            yield text


def _chat_text(event: dict[str, Any]) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))


def _messages_text(event: dict[str, Any]) -> str:
    return str(event["delta"].get("text", "")) if event.get("type") == "content_block_delta" else ""
