"""Calls that are being answered, and what they say so far.

Nothing is read of an answer until somebody asks: its bytes are captured for the record anyway, and a reader that comes
late begins with the first of them. What is not to be recorded is not shown either.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from daemon.core.errors import StoreError
from daemon.core.records import Dialect
from daemon.core.redact import Redactor
from daemon.server.exchange import Call
from daemon.server.outgoing import Outgoing
from daemon.store.db import Store
from daemon.wire.live import LiveText, Piece

#: Characters of an answer that are kept for those who watch it.
KEPT: Final = 1 << 20
#: From here on bytes are read off the event loop.
_MANY: Final = 1 << 16


class Flight:
    """One call. Used on the event loop alone."""

    def __init__(self, call: Call, outgoing: Outgoing, redactor: Redactor, number: int) -> None:
        #: Counts calls in the order in which they began.
        self.number = number
        self.receipt = call.receipt
        self.over = False
        self.pieces: list[Piece] = []
        #: Characters of ``pieces``; no more are kept than `KEPT`, and ``cut`` says so.
        self.chars = 0
        self.cut = False
        self._call = call
        self._outgoing = outgoing
        self._redactor = redactor
        self._listeners: set[asyncio.Event] = set()
        self._reading = asyncio.Lock()
        self._source: list[bytes] = []
        self._at = 0
        self._text: LiveText | None = None
        self._session: str | None = None
        self._placed = False
        self._placing = asyncio.Lock()

    @contextmanager
    def heard(self) -> Iterator[asyncio.Event]:
        """Set whenever there may be more to read."""
        event = asyncio.Event()
        self._listeners.add(event)
        self._outgoing.watched = self._listeners
        try:
            yield event
        finally:
            self._listeners.discard(event)
            self._outgoing.watched = self._listeners or None

    async def read(self) -> None:
        """Bring ``pieces`` up to date."""
        async with self._reading:
            chunks = self._outgoing.chunks
            if chunks is not self._source:  # another engine began to answer; nothing had been said
                self._source, self._at, self._text = chunks, 0, None
            over, data = self.over, b"".join(chunks[self._at :])
            self._at = len(chunks)
            if not self._call.stream or self.cut:
                return
            if self._text is None:
                reader = self._call.codec.reader(self.receipt)
                self._text = LiveText(reader, self._redactor.redact, self._call.encoding)
            feed = self._text.feed
            for piece in await asyncio.to_thread(feed, data) if len(data) > _MANY else feed(data):
                self._keep(piece)
            for piece in self._text.finish() if over else ():
                self._keep(piece)
            self.cut = self.cut or self._call.cut or (self._text.over and not over)

    def _keep(self, piece: Piece) -> None:
        room = KEPT - self.chars
        self.cut = self.cut or len(piece.text) > room
        if kept := piece.text[:room]:
            self.pieces.append(Piece(piece.kind, kept))
            self.chars += len(kept)

    def ended(self) -> None:
        """Its record is on disk, if one was made."""
        self.over = True
        for event in self._listeners:
            event.set()

    async def told(self, store: Store) -> dict[str, object]:
        """What a list says of it."""
        call, who = self._call, self._call.identity
        assert who is not None, "a call without an identity never begins"
        async with self._placing:  # who asks meanwhile waits for the session, and is not told that there is none
            if not self._placed:
                with suppress(StoreError):  # the daemon answers all the same
                    parse = call.transcript(b"")
                    self._session = await asyncio.to_thread(store.expected, call.exchange(b""), parse)
                self._placed = True
        return {
            "receipt": self.receipt,
            "session": self._session,
            "scenario": who.scenario,
            "agent": self._clean(who.agent),
            "model": self._clean(call.model_asked),
            "started_ns": call.started_ns,
        }

    def how(self) -> str:
        """How it ended."""
        return self._call.end.value

    def _clean(self, text: str | None) -> str | None:
        if text is None:
            return None
        return self._redactor.redact(text.encode("utf-8", "replace"))[0].decode("utf-8", "replace")


class Live:
    """All calls that are being answered. Used on the event loop alone."""

    def __init__(self, redactor: Redactor, changed: Callable[[], None]) -> None:
        """``changed`` is called when one begins or ends."""
        self._redactor = redactor
        self._changed = changed
        self._flights: dict[str, Flight] = {}
        #: How many calls began.
        self.begun = 0

    def begin(self, call: Call, outgoing: Outgoing) -> None:
        if call.unrecorded is None and call.dialect is not Dialect.OTHER:
            self.begun += 1
            self._flights[call.receipt] = Flight(call, outgoing, self._redactor, self.begun)
            self._changed()

    def end(self, call: Call) -> None:
        if (flight := self._flights.pop(call.receipt, None)) is not None:
            flight.ended()
            self._changed()

    def get(self, receipt: str) -> Flight | None:
        return self._flights.get(receipt)

    def since(self, number: int) -> list[Flight]:
        """Those that began after that one, oldest first."""
        return [flight for flight in self._flights.values() if flight.number > number]
