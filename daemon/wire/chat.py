"""The chat.completions dialect (OpenAI and everything that speaks like it)."""

from daemon.core.records import ChatRequest
from daemon.wire import chat_request, chat_writer, jsontext
from daemon.wire.base import Peek, Renderer
from daemon.wire.chat_answer import ChatAssembler
from daemon.wire.chat_reader import ChatReader
from daemon.wire.chat_renderer import ChatRenderer
from daemon.wire.errors import openai_error
from daemon.wire.peek import peek
from daemon.wire.reader import Reader
from daemon.wire.transcript import Reading, Transcriber


class Chat(Transcriber):
    """See `daemon.wire.base.DialectCodec`."""

    def __init__(self) -> None:
        super().__init__(Reading(chat_request.message, ChatAssembler))

    def peek(self, body: bytes) -> Peek:
        return peek(body)

    def parse(self, body: bytes) -> ChatRequest:
        return chat_request.parse(body)

    def write(self, request: ChatRequest) -> bytes:
        return chat_writer.write(request)

    def reader(self, receipt: str) -> Reader:
        return ChatReader(receipt)

    def renderer(self, request: ChatRequest, receipt: str, model: str, created: int) -> Renderer:
        return ChatRenderer(request, receipt, model, created)

    def error(self, status: int, kind: str, message: str) -> bytes:
        return openai_error(status, kind, message)

    def error_event(self, status: int, kind: str, message: str, *, after: bytes = b"") -> bytes:
        return b"data: " + openai_error(status, kind, message) + b"\n\n"

    def keepalive(self, model: str) -> bytes:
        """A chunk that says nothing: comments break strict clients, and so does an empty list of choices."""
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}
        chunk = {"id": "chatcmpl-reef", "object": "chat.completion.chunk", "created": 0, "model": model}
        return b"data: " + jsontext.encode({**chunk, "choices": [choice]}) + b"\n\n"
