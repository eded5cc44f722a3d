"""The Responses dialect (OpenAI; the only one that Codex speaks)."""

from daemon.core.records import ChatRequest
from daemon.wire import jsontext, responses_items, responses_request, responses_writer
from daemon.wire.base import Peek, Renderer
from daemon.wire.conversation import answer_id
from daemon.wire.errors import openai_error, responses_error
from daemon.wire.peek import peek
from daemon.wire.reader import Reader
from daemon.wire.responses_answer import ResponsesAssembler
from daemon.wire.responses_reader import ResponsesReader
from daemon.wire.responses_renderer import ResponsesRenderer
from daemon.wire.split import RESPONSES
from daemon.wire.transcript import Reading, Transcriber


class Responses(Transcriber):
    """See `daemon.wire.base.DialectCodec`."""

    def __init__(self) -> None:
        reading = Reading(responses_items.message, ResponsesAssembler, names=RESPONSES, joins=responses_items.is_answer)
        super().__init__(reading)

    def peek(self, body: bytes) -> Peek:
        return peek(body)

    def parse(self, body: bytes) -> ChatRequest:
        return responses_request.parse(body)

    def write(self, request: ChatRequest) -> bytes:
        return responses_writer.write(request)

    def reader(self, receipt: str) -> Reader:
        return ResponsesReader(receipt)

    def renderer(self, request: ChatRequest, receipt: str, model: str, created: int) -> Renderer:
        return ResponsesRenderer(request, receipt, model, created)

    def error(self, status: int, kind: str, message: str) -> bytes:
        return openai_error(status, kind, message)

    def error_event(self, status: int, kind: str, message: str, *, after: bytes = b"") -> bytes:
        """Codex reads `response.failed`, and no ``error``; OpenAI's client only one of the response's own id."""
        response = {"id": answer_id(after) or "resp_failed", "object": "response", "status": "failed", "output": []}
        failed = {**response, "error": responses_error(status, kind, message)}
        event = {"type": "response.failed", "sequence_number": 0, "response": failed}
        return b"event: response.failed\ndata: " + jsontext.encode(event) + b"\n\n"

    def keepalive(self, model: str) -> bytes:
        """A comment: OpenAI's client takes no event before `response.created`, and every reader skips comments."""
        return b": keep-alive\n\n"
