"""Requests that are no conversation (embeddings, completions, files): passed through and recorded as they are.

Nothing in them is taken for a message, and no engine of ours answers them.
"""

from typing import Any

from daemon.core.errors import NotSupported
from daemon.core.records import ChatRequest, Message, Text, Transcript, Usage
from daemon.wire import canonical, jsontext
from daemon.wire.answer import usage_of
from daemon.wire.base import Peek, Redact, Renderer
from daemon.wire.encoding import Undecodable, decoded
from daemon.wire.errors import CHAT_TYPES
from daemon.wire.reader import Reader

_DEFAULT = "default"


class Other:
    """See `daemon.wire.base.DialectCodec`."""

    def peek(self, body: bytes) -> Peek:
        """Never raises: what is no JSON has no model. A stream is not ours to keep alive."""
        model = _object(body).get("model")
        return Peek(model if isinstance(model, str) and model else _DEFAULT, False)

    def parse(self, body: bytes) -> ChatRequest:
        raise NotSupported(
            "the engine inside answers only chat/completions, messages and responses",
            hint="route this model to a provider: models: in the configuration",
        )

    def write(self, request: ChatRequest) -> bytes:
        raise NotSupported("conversations are not written in this dialect")

    def reader(self, receipt: str) -> Reader:
        raise NotSupported("conversations are not read in this dialect")

    def renderer(self, request: ChatRequest, receipt: str, model: str, created: int) -> Renderer:
        raise NotSupported("conversations are not answered in this dialect")

    def error(self, status: int, kind: str, message: str) -> bytes:
        """In a shape that every vendor's client reads."""
        name = CHAT_TYPES.get(status, "server_error")
        error = {"type": name, "message": jsontext.encodable(message), "code": kind, "param": None}
        return jsontext.encode({"type": "error", "error": error})

    def error_event(self, status: int, kind: str, message: str, *, after: bytes = b"") -> bytes:
        return b"data: " + self.error(status, kind, message) + b"\n\n"

    def keepalive(self, model: str) -> bytes:
        return b": keep-alive\n\n"

    def transcript(
        self,
        request: bytes,
        response: bytes,
        *,
        stream: bool,
        redact: Redact,
        request_encoding: str = "",
        response_encoding: str = "",
    ) -> Transcript:
        notes: list[str] = []
        asked = _text(request, request_encoding, "request", notes)
        answered = _text(response, response_encoding, "response", notes)
        head, secrets = redact(asked)
        kept, more = redact(answered)
        said = _object(answered)
        usage, model = said.get("usage"), said.get("model")
        return Transcript(
            head=head,
            separator=b"",
            tail=b"",
            messages=(),
            root=canonical.digest([]),
            answer=None,
            response=kept,
            usage=usage_of(usage) if isinstance(usage, dict) else Usage(),
            model=model if isinstance(model, str) else None,
            redacted=secrets + more,
            note="; ".join(notes) or None,
        )

    def newest(self, body: bytes) -> Message | None:
        return None

    def message(self, raw: bytes) -> Message:
        return Message("user", (Text(raw.decode("utf-8", "replace")),))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = jsontext.decode(body) if body.lstrip().startswith(b"{") else None
    except jsontext.NotJson:
        value = None
    return value if isinstance(value, dict) else {}


def _text(body: bytes, encoding: str, what: str, notes: list[str]) -> bytes:
    """The decoded body; empty where it is no text, since what cannot be read cannot be redacted."""
    try:
        plain = decoded(body, encoding)
        plain.decode()
    except (Undecodable, UnicodeDecodeError) as error:
        notes.append(f"the {what} is not kept: {error}")
        return b""
    return plain
