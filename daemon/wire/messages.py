"""The messages dialect (Anthropic and everything that speaks like it)."""

from daemon.core.records import ChatRequest
from daemon.wire import jsontext, messages_request, messages_writer
from daemon.wire.base import Peek, Renderer
from daemon.wire.errors import anthropic_error
from daemon.wire.messages_answer import MessagesAssembler
from daemon.wire.messages_reader import MessagesReader
from daemon.wire.messages_renderer import MessagesRenderer, sse
from daemon.wire.peek import peek
from daemon.wire.reader import Reader
from daemon.wire.transcript import Reading, Transcriber


class Messages(Transcriber):
    """See `daemon.wire.base.DialectCodec`."""

    def __init__(self) -> None:
        super().__init__(Reading(messages_request.message, MessagesAssembler))

    def peek(self, body: bytes) -> Peek:
        return peek(body)

    def parse(self, body: bytes) -> ChatRequest:
        return messages_request.parse(body)

    def write(self, request: ChatRequest) -> bytes:
        return messages_writer.write(request)

    def reader(self, receipt: str) -> Reader:
        return MessagesReader(receipt)

    def renderer(self, request: ChatRequest, receipt: str, model: str, created: int) -> Renderer:
        return MessagesRenderer(receipt, model)

    def error(self, status: int, kind: str, message: str) -> bytes:
        return jsontext.encode(anthropic_error(status, kind, message))

    def error_event(self, status: int, kind: str, message: str, *, after: bytes = b"") -> bytes:
        return sse(anthropic_error(status, kind, message))

    def keepalive(self, model: str) -> bytes:
        return sse({"type": "ping"})
