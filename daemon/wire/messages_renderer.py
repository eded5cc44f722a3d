"""Writing messages answers as Anthropic shapes them: blocks opened, filled and closed in order."""

from typing import Any, Final

from daemon.core.generation import (
    EngineEvent,
    Finished,
    FinishReason,
    RefusalDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolArguments,
    ToolStart,
)
from daemon.core.records import Usage
from daemon.wire import jsontext
from daemon.wire.errors import anthropic_error

_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
}


def sse(data: dict[str, Any]) -> bytes:
    """An event named after its ``type``."""
    return b"event: " + str(data["type"]).encode() + b"\ndata: " + jsontext.encode(data) + b"\n\n"


class MessagesRenderer:
    """One answer. Also keeps all of it, for the body that is not streamed."""

    def __init__(self, receipt: str, model: str) -> None:
        self._head = {
            "id": f"msg_{receipt.removeprefix('rec_')}",
            "type": "message",
            "role": "assistant",
            "model": model,
        }
        self._blocks: list[dict[str, Any]] = []
        self._tools: dict[int, int] = {}
        self._open: int | None = None
        self._reason: str | None = None
        self._sequence: str | None = None
        self._usage = Usage()
        self._refused = False

    def event(self, event: EngineEvent) -> bytes:
        match event:
            case Started(prompt, cached):
                self._usage = Usage(prompt=prompt, cached=cached)
                return sse({"type": "message_start", "message": self._message([])})
            case TextDelta(text):
                return self._text("text", jsontext.encodable(text))
            case RefusalDelta(text):
                self._refused = True
                return self._text("text", jsontext.encodable(text))
            case ThinkingDelta(text):
                return self._text("thinking", jsontext.encodable(text))
            case ThinkingEnd(seal):
                return self._sealed(seal)
            case ToolStart(index, id, name):
                self._tools[index] = len(self._blocks)
                return self._start({"type": "tool_use", "id": id, "name": name, "input": {}}, written="")
            case ToolArguments(index, text):
                block, text = self._tools[index], jsontext.encodable(text)
                self._blocks[block]["written"] += text
                return _delta(block, {"type": "input_json_delta", "partial_json": text}) if text else b""
            case Finished():
                return self._finished(event)

    def _text(self, kind: str, text: str) -> bytes:
        """Words of an answer, or of a thought."""
        if not text:
            return b""
        start = b"" if self._is_open(kind) else self._start(_empty(kind), written="")
        index = len(self._blocks) - 1
        self._blocks[index]["written"] += text
        return start + _delta(index, {"type": f"{kind}_delta", kind: text})

    def _is_open(self, kind: str) -> bool:
        return self._open is not None and self._blocks[self._open]["block"]["type"] == kind

    def _sealed(self, seal: str) -> bytes:
        """A thought ends with its signature: without that event Claude Code drops the whole turn."""
        start = b""
        if not self._is_open("thinking"):
            if not seal:
                return b""
            start = self._start(_empty("thinking"), written="")
        index = len(self._blocks) - 1
        self._blocks[index]["block"] = {**self._blocks[index]["block"], "signature": seal}
        return start + _delta(index, {"type": "signature_delta", "signature": seal}) + self._stop()

    def _start(self, block: dict[str, Any], *, written: str) -> bytes:
        closed = self._stop()
        self._open = len(self._blocks)
        self._blocks.append({"block": block, "written": written})
        return closed + sse({"type": "content_block_start", "index": self._open, "content_block": block})

    def _stop(self) -> bytes:
        index, self._open = self._open, None
        return b"" if index is None else sse({"type": "content_block_stop", "index": index})

    def _finished(self, event: Finished) -> bytes:
        self._reason, self._sequence, self._usage = _REASONS[event.reason], event.stop_sequence, event.usage
        self._reason = "refusal" if self._refused else self._reason
        delta = {"stop_reason": self._reason, "stop_sequence": self._sequence}
        return self._stop() + sse({"type": "message_delta", "delta": delta, "usage": _usage(self._usage)})

    def keepalive(self) -> bytes:
        return sse({"type": "ping"})

    def finish(self) -> bytes:
        return sse({"type": "message_stop"})

    def error(self, status: int, kind: str, message: str) -> bytes:
        return sse(anthropic_error(status, kind, message))

    def body(self) -> bytes:
        return jsontext.encode(self._message([_whole(**block) for block in self._blocks]))

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            **self._head,
            "content": content,
            "stop_reason": self._reason,
            "stop_sequence": self._sequence,
            "usage": _usage(self._usage),
        }


def _empty(kind: str) -> dict[str, Any]:
    return {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return sse({"type": "content_block_delta", "index": index, "delta": delta})


def _whole(block: dict[str, Any], written: str) -> dict[str, Any]:
    if block["type"] in ("text", "thinking"):
        return {**block, block["type"]: written}
    value = jsontext.arguments(written)
    # An input must be an object. What the model wrote is kept, so that the tool can say what is wrong with it.
    return {**block, "input": {"invalid_json": written} if value is None else value}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
