"""Reading Responses answers as engine events. What an item's deltas left out is taken from the item when it is done."""

from typing import Any, Final

from daemon.core.generation import (
    EngineEvent,
    Finished,
    RefusalDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from daemon.wire import jsontext, seal
from daemon.wire.answer import problem_in
from daemon.wire.errors import error_message
from daemon.wire.reader import CallOrder, broke_off, failed
from daemon.wire.responses_answer import FINAL, ResponsesAssembler
from daemon.wire.responses_items import full

_SAID: Final[dict[str, type[TextDelta] | type[RefusalDelta] | type[ThinkingDelta]]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": RefusalDelta,
    "response.reasoning_summary_text.delta": ThinkingDelta,
    "response.reasoning_text.delta": ThinkingDelta,
}
_CALLED: Final = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_CALLS: Final = ("function_call", "custom_tool_call")


class ResponsesReader:
    """See `daemon.wire.reader.Reader`. Calls of tools that ran on the vendor's servers are not told."""

    def __init__(self, receipt: str) -> None:
        self._counts = ResponsesAssembler()  # usage and how it ended, as the recording reads them
        self._order = CallOrder(receipt)
        #: Items (and parts of a thought's summary) of which something was told.
        self._told: set[object] = set()
        self._begun = False
        self._refused = False

    def whole(self, body: dict[str, Any]) -> list[EngineEvent]:
        if body.get("object") != "response" and "output" not in body:
            raise failed(error_message(jsontext.encode(body)))
        output = body.get("output")
        events = self._response({**body, "output": []}, final=True)
        for index, item in enumerate(output if isinstance(output, list) else []):
            if isinstance(item, dict):
                events += [*self._added(index, item), *self._done(index, item)]
        return events

    def event(self, name: str, data: dict[str, Any]) -> list[EngineEvent]:
        kind, index, item = _text(data.get("type")) or name, data.get("output_index"), data.get("item")
        index = index if isinstance(index, int) else None
        if kind in _SAID:
            return self._said(kind, index, data)
        if kind in _CALLED:
            self._told.add(index)
            return list(self._order.piece(index, "", "", _text(data.get("delta"))))
        if kind == "response.output_item.added" and isinstance(item, dict):
            return self._added(index, item)
        if kind == "response.output_item.done" and isinstance(item, dict):
            return self._done(index, item)
        if isinstance(response := data.get("response"), dict):
            return self._response({**response, "output": []}, final=kind in FINAL)
        if problem := problem_in(name, data):
            raise failed(problem)
        return []

    def _response(self, response: dict[str, Any], *, final: bool) -> list[EngineEvent]:
        self._counts.event("", {"type": FINAL[0] if final else "response.in_progress", "response": response})
        if problem := self._counts.answer().problem:
            raise failed(problem)
        begun, self._begun = self._begun, True
        return [] if begun else [Started(0, 0)]

    def _said(self, kind: str, index: int | None, data: dict[str, Any]) -> list[EngineEvent]:
        event, text = _SAID[kind], _text(data.get("delta"))
        self._refused = self._refused or event is RefusalDelta
        place = (index, data.get("summary_index") if isinstance(data.get("summary_index"), int) else None)
        # The parts of a summary are paragraphs of one thought.
        apart = event is ThinkingDelta and index in self._told and place not in self._told
        self._told |= {index, place}
        return [event(f"\n\n{text}" if apart else text)] if text else []

    def _added(self, index: int | None, item: dict[str, Any]) -> list[EngineEvent]:
        if item.get("type") not in _CALLS:
            return []
        name = full(_text(item.get("name")), _text(item.get("namespace")))
        return list(self._order.piece(index, _text(item.get("call_id")), name, ""))

    def _done(self, index: int | None, item: dict[str, Any]) -> list[EngineEvent]:
        kind, told = item.get("type"), index in self._told
        if kind in _CALLS:
            written = "" if told else _text(item.get("arguments", item.get("input")))
            return [*self._added(index, item), *self._order.piece(index, "", "", written), *self._order.over(index)]
        if kind == "reasoning":
            words = [] if told else _thoughts(item)
            sealed = _text(item.get("encrypted_content"))
            vendor = f"{seal.ENCRYPTED}{_text(item.get('id'))}:"
            return [*words, ThinkingEnd(seal.read(vendor, sealed))] if words or told or sealed else []
        return [] if told or kind != "message" else self._words(item)

    def _words(self, item: dict[str, Any]) -> list[EngineEvent]:
        events: list[EngineEvent] = []
        content = item.get("content")
        for part in content if isinstance(content, list) else []:
            if isinstance(part, dict) and (text := _text(part.get("text"))):
                events.append(TextDelta(text))
            elif isinstance(part, dict) and (refusal := _text(part.get("refusal"))):
                self._refused = True
                events.append(RefusalDelta(refusal))
        return events

    def end(self) -> list[EngineEvent]:
        answer = self._counts.answer()
        if answer.stop_reason is None:
            raise broke_off()
        if self._refused or answer.stop_reason == "content_filter":
            return [*self._order.rest(), Finished("refusal", answer.usage)]
        reason = "length" if answer.stop_reason == "max_output_tokens" else "tool_calls" if self._order else "stop"
        return [*self._order.rest(), Finished(reason, answer.usage)]  # type: ignore[arg-type]  # of three literals


def _thoughts(item: dict[str, Any]) -> list[EngineEvent]:
    for name in ("summary", "content"):
        parts = item.get(name)
        texts = [_text(part.get("text")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        if any(texts):
            return [ThinkingDelta("\n\n".join(texts))]
    return []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
