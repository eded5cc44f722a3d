"""Reading a provider's answer as the events of an engine, so that it can be told in another dialect.

The other half of a renderer. What each dialect has of its own is in ``*_reader.py``; here is what they share. A reader
is strict where the recording is lenient: what it cannot make sense of, an agent must not be told as a whole answer.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final, Protocol

from daemon.core.errors import BrokeOff, EngineError
from daemon.core.generation import EngineEvent, ToolArguments, ToolStart
from daemon.wire import jsontext

#: What every vendor takes as a call's id, and as a tool's name.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


class Reader(Protocol):
    """One answer. Feed its events or its one body, then take `end`."""

    def event(self, name: str, data: dict[str, Any]) -> list[EngineEvent]:
        """Raises EngineError where the provider tells of a failure."""
        ...

    def whole(self, body: dict[str, Any]) -> list[EngineEvent]:
        """All but what `end` adds. Raises EngineError."""
        ...

    def end(self) -> list[EngineEvent]:
        """`Finished`, and what had to wait for it. Raises EngineError when the answer broke off."""
        ...


def failed(said: str) -> EngineError:
    return EngineError(said if said.startswith("the provider") else f"the provider reported: {said}")


def broke_off() -> BrokeOff:
    return BrokeOff("the provider's answer ended without its end", hint="send the request again")


def call_id(id: str) -> str:
    """An id that is valid everywhere; the same for the same id."""
    if _ID.fullmatch(id):
        return id
    return f"call_{blake2b(id.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"


def tool_name(name: str) -> str:
    """A name that is valid everywhere; the same for the same name. Those of MCP servers' tools are often longer."""
    if _NAME.fullmatch(name):
        return name
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{_ODD.sub('_', name)[:55]}_{digest}"


class _Call:
    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.waiting: list[str] = []
        self.written: list[str] = []
        self.started = False
        self.over = False

    @property
    def whole(self) -> bool:
        """Whether nothing more can come. Looks at the end first: reading all at each of many pieces takes minutes."""
        text = "".join([*self.written, *self.waiting]).rstrip()
        return self.over or (text.endswith("}") and jsontext.arguments(text) is not None)

    @property
    def silent(self) -> bool:
        return not self.written and not self.waiting


class CallOrder:
    """Puts calls one behind the other, whatever order their pieces come in: dialects differ in whether they may mix.

    The first call that is not over streams on; pieces of later ones wait for it, and no longer. One is over when it is
    said to be, when its arguments are whole, or when it has none and a later one has. An empty object before the
    arguments is none of them: some servers begin with one.
    """

    def __init__(self, receipt: str) -> None:
        self._receipt = receipt
        self._calls: dict[object, _Call] = {}
        self._order: list[_Call] = []
        self._at = 0

    def __bool__(self) -> bool:
        return bool(self._order)

    def piece(self, key: object, id: str, name: str, text: str) -> Iterator[EngineEvent]:
        """More of the call of that key. Raises EngineError for pieces of one that had to be taken for whole."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(len(self._order))
            self._order.append(call)
        if text and call.index < self._at:
            raise failed("the provider's tool calls are mixed up")
        call.id, call.name = call.id or id, call.name or name
        if text:
            call.waiting.append(text)
        yield from self._go_on()

    def over(self, key: object) -> Iterator[EngineEvent]:
        """Nothing more of this call comes."""
        if (call := self._calls.get(key)) is not None:
            call.over = True
            yield from self._go_on()

    def rest(self) -> Iterator[EngineEvent]:
        """The answer is over."""
        for call in self._order:
            call.over = True
        yield from self._go_on()

    def _go_on(self) -> Iterator[EngineEvent]:
        while self._at < len(self._order):
            call = self._order[self._at]
            if not call.name and not call.over:
                return
            later = self._order[self._at + 1 :]
            yield from self._told(call, may_go_on=not (call.over or later))
            if not later or not (call.whole or (call.silent and not later[0].silent)):
                return
            self._at += 1

    def _told(self, call: _Call, *, may_go_on: bool) -> Iterator[EngineEvent]:
        if not call.started:
            call.started = True
            yield ToolStart(call.index, call_id(call.id or f"call_{self._receipt}_{call.index}"), call.name)
        if call.waiting:
            text = "".join(call.waiting)
            if not call.written and text.lstrip().startswith("{}"):
                text = text.strip().removeprefix("{}").lstrip()
                if not text and may_go_on:
                    return
                text = text or "{}"
            call.written.append(text)
            call.waiting = []
            yield ToolArguments(call.index, text)
