"""What an answer says while it streams: its dialect's bytes, as they come, to words that a person may see.

For showing only. What cannot be read ends the words, never the answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from daemon.core.errors import EngineError
from daemon.core.generation import EngineEvent, RefusalDelta, TextDelta, ThinkingDelta, ToolArguments, ToolStart
from daemon.core.held import Held
from daemon.wire import jsontext
from daemon.wire.base import Redact
from daemon.wire.encoding import Undecodable, Undoing
from daemon.wire.reader import Reader
from daemon.wire.sse import EventReader

Kind = Literal["text", "thinking", "tool"]

#: What waits for its end this long is not shown any more.
_HELD_MOST: Final = 1 << 20
_DONE: Final = "[DONE]"


@dataclass(frozen=True, slots=True)
class Piece:
    """More of an answer, redacted. A call is its tool's name, a blank and its arguments; the next begins a new line."""

    kind: Kind
    text: str


class LiveText:
    """One streamed answer: `feed` its bytes, then `finish`. ``encoding`` is its content encoding."""

    def __init__(self, reader: Reader, redact: Redact, encoding: str = "") -> None:
        self._reader = reader
        self._redact = redact
        self._events = EventReader()
        self._kind: Kind | None = None
        self._held = Held(redact)
        self._said: list[str] = []
        #: Nothing more of it can be shown.
        self.over = False
        try:
            self._undo = Undoing(encoding or "identity").feed
        except Undecodable:
            self.over = True

    def feed(self, data: bytes) -> list[Piece]:
        """What can be shown of it now; a piece for each change of kind."""
        pieces: list[Piece] = []
        try:
            for event in () if self.over else self._read(data):
                pieces += self._take(event)
        except (EngineError, Undecodable):
            self.over = True
        pieces += self._let_go(whole=False)
        self.over = self.over or max(self._held.waiting, self._events.unfinished) > _HELD_MOST
        return pieces

    def finish(self) -> list[Piece]:
        """What waited for the end; nothing where that is not known."""
        return [] if self.over else self._let_go(whole=True)

    def _read(self, data: bytes) -> Iterator[EngineEvent]:
        for name, text in self._events.feed(self._undo(data)):
            try:
                value = jsontext.decode(text) if text != _DONE else None
            except jsontext.NotJson:
                continue
            if isinstance(value, dict):
                yield from self._reader.event(name, value)

    def _take(self, event: EngineEvent) -> list[Piece]:
        match event:
            case TextDelta(text=text) | RefusalDelta(text=text):
                return self._say("text", text)
            case ThinkingDelta(text=text):
                return self._say("thinking", text)
            case ToolStart(name=name):
                return self._say("tool", f"\n{name} " if self._kind == "tool" else f"{name} ")
            case ToolArguments(text=text):
                return self._say("tool", text)
        return []

    def _say(self, kind: Kind, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        if kind != self._kind:
            pieces = self._let_go(whole=True)
            self._kind, self._held = kind, Held(self._redact)
        self._said.append(text)
        return pieces

    def _let_go(self, *, whole: bool) -> list[Piece]:
        text = self._held.feed("".join(self._said)) + (self._held.finish() if whole else "")
        self._said.clear()
        return [Piece(self._kind, text)] if text and self._kind is not None else []
