"""Reading messages answers as engine events."""

from typing import Any, Final

from daemon.core.generation import (
    EngineEvent,
    Finished,
    FinishReason,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from daemon.wire import jsontext, seal
from daemon.wire.answer import problem_in
from daemon.wire.messages_answer import MessagesAssembler
from daemon.wire.reader import CallOrder, broke_off, failed

_REASONS: Final[dict[str, FinishReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "stop_sequence": "stop_sequence",
}


class MessagesReader:
    """See `daemon.wire.reader.Reader`. Blocks of tools that ran on the vendor's servers are not told."""

    def __init__(self, receipt: str) -> None:
        self._counts = MessagesAssembler()  # usage and the reason to stop, as the recording reads them
        self._order = CallOrder(receipt)
        #: Kind of each block that is open, with what of it only counts at its end.
        self._kinds: dict[object, str] = {}
        self._signatures: dict[object, str] = {}
        self._inputs: dict[object, object] = {}
        self._sequence: str | None = None
        self._begun = False

    def whole(self, body: dict[str, Any]) -> list[EngineEvent]:
        if problem := problem_in("", body):
            raise failed(problem)
        self._counts.whole({**body, "content": []})
        self._note_sequence(body)
        events: list[EngineEvent] = [self._started()]
        content = body.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                events += [*self._open(index, block), *self._filled(index, block), *self._close(index)]
        return events

    def event(self, name: str, data: dict[str, Any]) -> list[EngineEvent]:
        if problem := problem_in(name, data):
            raise failed(problem)
        kind, index = data.get("type") or name, data.get("index")
        index = index if isinstance(index, int) else None
        delta = data.get("delta")
        match kind:
            case "message_start":
                self._counts.event(name, data)
                return [self._started()]
            case "content_block_start" if isinstance(block := data.get("content_block"), dict):
                return self._open(index, block)
            case "content_block_delta" if isinstance(delta, dict):
                return self._delta(index, delta)
            case "content_block_stop":
                return self._close(index)
            case "message_delta":
                self._counts.event(name, data)
                self._note_sequence(delta)
        return []

    def _started(self) -> Started:
        self._begun = True
        usage = self._counts.answer().usage
        return Started(usage.prompt, usage.cached)

    def _note_sequence(self, message: object) -> None:
        if isinstance(message, dict) and isinstance(sequence := message.get("stop_sequence"), str):
            self._sequence = sequence

    def _open(self, index: object, block: dict[str, Any]) -> list[EngineEvent]:
        kind = block.get("type")
        self._kinds[index] = kind if isinstance(kind, str) else ""
        if kind == "redacted_thinking":
            return [ThinkingEnd(seal.HIDDEN + _text(block.get("data")))]
        if kind == "tool_use":
            self._inputs[index] = block.get("input")
            return list(self._order.piece(index, _text(block.get("id")), _text(block.get("name")), ""))
        return []

    def _filled(self, index: object, block: dict[str, Any]) -> list[EngineEvent]:
        """What a block has that came at once."""
        if block.get("type") == "text":
            return self._delta(index, {**block, "type": "text_delta"})
        if block.get("type") != "thinking":
            return []
        thought = self._delta(index, {**block, "type": "thinking_delta"})
        return [*thought, *self._delta(index, {**block, "type": "signature_delta"})]

    def _delta(self, index: object, delta: dict[str, Any]) -> list[EngineEvent]:
        match delta.get("type"):
            case "text_delta" if text := _text(delta.get("text")):
                return [TextDelta(text)]
            case "thinking_delta" if text := _text(delta.get("thinking")):
                return [ThinkingDelta(text)]
            case "signature_delta":
                self._signatures[index] = self._signatures.get(index, "") + _text(delta.get("signature"))
            case "input_json_delta" if self._kinds.get(index) == "tool_use":
                if text := _text(delta.get("partial_json")):
                    self._inputs[index] = None
                    return list(self._order.piece(index, "", "", text))
        return []

    def _close(self, index: object) -> list[EngineEvent]:
        kind = self._kinds.pop(index, None)
        if kind == "thinking":
            return [ThinkingEnd(seal.read(seal.SIGNED, self._signatures.pop(index, "")))]
        if kind != "tool_use":
            return []
        given = self._inputs.pop(index, None)
        # An object that came with the block counts where no text did.
        written = jsontext.text(given) if isinstance(given, dict) else ""
        return [*self._order.piece(index, "", "", written), *self._order.over(index)]

    def end(self) -> list[EngineEvent]:
        answer = self._counts.answer()
        if not self._begun or answer.stop_reason is None:
            raise broke_off()
        reason = _REASONS.get(answer.stop_reason, "stop")
        sequence = self._sequence if reason == "stop_sequence" else None
        return [*self._order.rest(), Finished(reason, answer.usage, stop_sequence=sequence)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
