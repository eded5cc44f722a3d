"""An agent's side of the daemon: one prompt over TCP with the agent token, streamed.

Written on the standard library, to show that nothing of Reef's is needed to use Reef.
"""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from daemon.core.errors import EngineError, Unreachable
from daemon.core.ids import new_id

#: A model may be loading, and a small machine reads slowly.
_SILENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    receipt: str
    text: str
    release: str


@dataclass(frozen=True, slots=True)
class Speaker:
    """Where to ask, and as whom. ``url`` is the daemon's, without ``/v1``."""

    url: str
    token: str
    scenario: str

    def ask(self, prompt: str, *, max_tokens: int) -> Answer:
        """Raises EngineError with the daemon's words, Unreachable."""
        messages = [{"role": "user", "content": prompt}]
        body = {"model": "default", "stream": True, "max_tokens": max_tokens, "messages": messages}
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_SILENCE_SECONDS)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), self._headers())
            response = connection.getresponse()
            if response.status != 200:
                raise EngineError(_message(response.read(), response.status), hint="reef logs")
            text = "".join(_texts(response))
            receipt, release = (
                response.getheader("x-reef-agent-record-id", ""),
                response.getheader("x-reef-release-id", ""),
            )
            return Answer(receipt, text, release)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.url} broke off: {error!r}", hint="reef logs") from error
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "User-Agent": "reef-demo/1",
            "x-reef-scenario": self.scenario,
            "x-reef-session-id": new_id("req"),  # the same words asked again are a conversation of their own
        }


def _message(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}: {body[:200].decode(errors='replace')}"


def _texts(response: http.client.HTTPResponse) -> Iterator[str]:
    for line in response:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data == b"[DONE]":
            continue
        event = json.loads(data)
        if "error" in event:
            raise EngineError(str(event["error"].get("message")), hint="reef logs")
        for choice in event.get("choices", ()):
            yield choice["delta"].get("content") or ""
