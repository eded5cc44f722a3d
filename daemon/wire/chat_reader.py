"""Reading chat.completions answers as engine events. Tolerates what compatible servers do, as the recording does."""

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
)
from daemon.core.records import Usage
from daemon.wire import seal
from daemon.wire.answer import problem_in, usage_of
from daemon.wire.chat_calls import ChatCall, ChatCalls
from daemon.wire.chat_request import loose_text
from daemon.wire.reader import CallOrder, broke_off, failed

_REASONS: Final[dict[str, FinishReason]] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


class ChatReader:
    """See `daemon.wire.reader.Reader`."""

    def __init__(self, receipt: str) -> None:
        self._calls = ChatCalls()
        self._order = CallOrder(receipt)
        self._begun = False
        self._thinking = False
        self._reason: str | None = None
        self._usage = Usage()

    def whole(self, body: dict[str, Any]) -> list[EngineEvent]:
        return self.event("", body)

    def event(self, name: str, data: dict[str, Any]) -> list[EngineEvent]:
        if problem := problem_in(name, data):
            raise failed(problem)
        events: list[EngineEvent] = [] if self._begun else [Started(0, 0)]
        self._begun = True
        if isinstance(usage := data.get("usage"), dict):
            self._usage = usage_of(usage)
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                events += self._choice(choice)
        return events

    def _choice(self, choice: dict[str, Any]) -> list[EngineEvent]:
        if isinstance(reason := choice.get("finish_reason"), str):
            self._reason = reason
        if reason == "error":
            raise failed("its own provider broke off")
        delta = choice.get("delta") or choice.get("message")
        return self._delta(delta) if isinstance(delta, dict) else []

    def _delta(self, delta: dict[str, Any]) -> list[EngineEvent]:
        events: list[EngineEvent] = []
        if thought := loose_text(delta.get("reasoning_content") or delta.get("reasoning")):
            self._thinking = True
            events.append(ThinkingDelta(thought))
        text, refusal = loose_text(delta.get("content")), loose_text(delta.get("refusal"))
        calls = self._calls.delta(delta)
        if text or refusal or calls:
            events += self._thought()
        if text:
            events.append(TextDelta(text))
        if refusal:
            events.append(RefusalDelta(refusal))
        for call, written in calls:
            events += self._order.piece(_key(call), call.id, call.name, written)
        return events

    def _thought(self) -> list[EngineEvent]:
        thinking, self._thinking = self._thinking, False
        return [ThinkingEnd(seal.PLAIN)] if thinking else []

    def end(self) -> list[EngineEvent]:
        if self._reason is None:
            raise broke_off()
        reason = _REASONS.get(self._reason, "tool_calls" if self._order else "stop")
        return [*self._thought(), *self._order.rest(), Finished(reason, self._usage)]


def _key(call: ChatCall) -> int:
    return id(call)
