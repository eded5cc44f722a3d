"""The seam between bytes and words: what every dialect can do.

A codec is pure: no I/O, no clock, no randomness. `parse` is for an engine of ours and refuses what it cannot honour;
everything for the record (`transcript`, `message`) takes whatever an agent or a provider sent and never raises. The
bytes that a codec splits always join back to what came in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final, Protocol

from daemon.core.generation import EngineEvent
from daemon.core.records import ChatRequest, Dialect, Message, Transcript
from daemon.wire.reader import Reader

#: Redacted bytes and how many secrets were taken out. Pure; the result of redacting JSON is still JSON.
Redact = Callable[[bytes], tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Peek:
    """What routing needs of a request."""

    model: str
    stream: bool


class Renderer(Protocol):
    """One answer on its way to bytes. Feed every event, then take `finish` (streamed) or `body` (not streamed)."""

    def event(self, event: EngineEvent) -> bytes:
        """The SSE bytes of an event; may be empty."""
        ...

    def keepalive(self) -> bytes:
        """An event that clients of this dialect ignore. Only after Started."""
        ...

    def finish(self) -> bytes:
        """The stream's terminal event."""
        ...

    def error(self, status: int, kind: str, message: str) -> bytes:
        """The stream's last event instead of `finish`: what went wrong. Only after Started."""
        ...

    def body(self) -> bytes:
        """The whole answer as one JSON body."""
        ...


class DialectCodec(Protocol):
    """Bytes ↔ records for one dialect."""

    def peek(self, body: bytes) -> Peek:
        """Read only the top level. Raises BadRequest when the body is not a JSON object."""
        ...

    def parse(self, body: bytes) -> ChatRequest:
        """Raises BadRequest that names the field and the value. Unknown fields are ignored."""
        ...

    def write(self, request: ChatRequest) -> bytes:
        """A request for a provider that speaks this dialect: the other way round from `parse`. Raises BadRequest for
        what cannot be told in it.
        """
        ...

    def reader(self, receipt: str) -> Reader:
        """Of an answer to such a request; ids that a provider left out follow from the receipt."""
        ...

    def renderer(self, request: ChatRequest, receipt: str, model: str, created: int) -> Renderer:
        """``created`` is in seconds since 1970; the answer's id follows from the receipt."""
        ...

    def error(self, status: int, kind: str, message: str) -> bytes:
        """The vendor's JSON error. A context overflow is put in the words that agents look for."""
        ...

    def error_event(self, status: int, kind: str, message: str, *, after: bytes = b"") -> bytes:
        """The same as the last event of a stream that no renderer began. ``after``: what has been sent of it."""
        ...

    def keepalive(self, model: str) -> bytes:
        """An event that clients ignore, for a stream that no renderer began; also before its first event."""
        ...

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
        """Never raises on odd bytes: trouble goes into ``note``. The record holds the decoded form of the bodies."""
        ...

    def newest(self, body: bytes) -> Message | None:
        """The last message of a request that is no system's; None where there is none. Never raises."""
        ...

    def message(self, raw: bytes) -> Message:
        """One stored message or answer, for display."""
        ...


_CODECS: Final = {
    Dialect.CHAT: "daemon.wire.chat:Chat",
    Dialect.MESSAGES: "daemon.wire.messages:Messages",
    Dialect.RESPONSES: "daemon.wire.responses:Responses",
    Dialect.OTHER: "daemon.wire.other:Other",
}


@cache
def dialect(name: Dialect) -> DialectCodec:
    """The codec of a dialect; one instance a process, since it remembers the messages it has read."""
    module, _, attribute = _CODECS[name].partition(":")
    codec: DialectCodec = getattr(import_module(module), attribute)()
    return codec
