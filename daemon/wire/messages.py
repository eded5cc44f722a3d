"""The messages dialect (Anthropic and everything that speaks like it)."""

from daemon.core.records import ChatRequest
from daemon.wire import jsontext, messages_request
from daemon.wire.base import Peek, Renderer
from daemon.wire.errors import anthropic_error
from daemon.wire.messages_answer import MessagesAssembler
from daemon.wire.messages_renderer import MessagesRenderer, sse
from daemon.wire.peek import peek
from daemon.wire.transcript import Reading, Transcriber


class Messages(Transcriber):
    """See `daemon.wire.base.DialectCodec`."""

    def __init__(self) -> None:
        super().__init__(Reading(messages_request.message, MessagesAssembler))

    def peek(self, body: bytes) -> Peek:
        return peek(body)

    def parse(self, body: bytes) -> ChatRequest:
        return messages_request.parse(body)

    def renderer(self, request: ChatRequest, receipt: str, model: str, created: int) -> Renderer:
        return MessagesRenderer(receipt, model)

    def error(self, status: int, kind: str, message: str) -> bytes:
        return jsontext.encode(anthropic_error(status, kind, message))

    def error_event(self, status: int, kind: str, message: str, *, after: bytes = b"") -> bytes:
        return sse(anthropic_error(status, kind, message))

    def keepalive(self, model: str) -> bytes:
        return sse({"type": "ping"})
