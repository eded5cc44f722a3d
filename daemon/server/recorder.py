"""Between the data plane and the store: an exchange is recorded before its end goes out, and recording never breaks it.

When the store cannot take a record (disk full, locked), the agent still gets its answer; the log says so once, `reef
status` says so until a record goes through again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

from daemon.core.records import Appended, Exchange, Transcript
from daemon.server import previous
from daemon.server.privacy import DENIED, PAUSED, Privacy
from daemon.store.db import Store

_log = logging.getLogger("reef.recorder")

#: How long an answer's end may wait for the disk before it goes out unrecorded.
PATIENCE_SECONDS = 15.0
#: The same once it is known that the store is in trouble.
RESIGNED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RecordingState:
    """``unrecorded`` counts exchanges since the start whose record was not confirmed in time; ``until_ns`` is a
    pause's end, None where it has none.
    """

    state: Literal["on", "degraded", "paused"]
    detail: str | None
    unrecorded: int
    until_ns: int | None = None


#: Told of every exchange at its end, with what was recorded of it. Cheap, and raises nothing.
Observer = Callable[[Exchange, Appended | None], None]


class Recorder:
    def __init__(self, store: Store, privacy: Privacy, observers: Sequence[Observer] = ()) -> None:
        self._store = store
        self._privacy = privacy
        self._observers = tuple(observers)
        self._trouble: str | None = None
        self._unrecorded = 0
        #: When the last exchange began of which no record was wanted, and why.
        self._passed: tuple[int, str] = (0, "")
        self._landing = _Landing()

    def state(self) -> RecordingState:
        pause = self._privacy.pause
        if pause.on():
            return RecordingState("paused", None, self._unrecorded, pause.until_ns())
        return RecordingState("degraded" if self._trouble else "on", self._trouble, self._unrecorded)

    async def unrecorded(self, cwd: str | None) -> str | None:
        """Why an exchange that arrives now from that folder is not to be recorded; None where it is."""
        return await self._privacy.unrecorded(cwd)

    def passed_since(self, started_ns: int) -> str | None:
        """Why a later exchange than one that began then was not recorded; None where there was none."""
        return self._passed[1] if self._passed[0] > started_ns else None

    async def conversation(self, scenario: str, body: bytes) -> bytes:
        """See `daemon.server.previous.whole`."""
        return await asyncio.to_thread(previous.whole, self._store, scenario, body)

    async def record(self, exchange: Exchange, parse: Callable[[], Transcript]) -> bool:
        """True once the record is on disk. False, never an exception, when it is not to be made, when that failed or
        took too long.
        """
        why = exchange.unrecorded or (PAUSED if self._privacy.pause.on() else None)
        if why in (PAUSED, DENIED):
            self._passed = max(self._passed, (exchange.started_ns, why))
        appended = await self._appended(exchange, parse) if why is None else None
        for observer in self._observers:
            observer(exchange, appended)
        return appended is not None

    async def _appended(self, exchange: Exchange, parse: Callable[[], Transcript]) -> Appended | None:
        try:
            written = self._store.append(exchange, parse)
            appended = await self._landing.awaited(written, RESIGNED_SECONDS if self._trouble else PATIENCE_SECONDS)
        except Exception as error:  # recording must not break the agent's request
            self._failed(exchange.receipt, error)
            return None
        if self._trouble:
            _log.warning("recording works again")
            self._trouble = None
        return appended

    def _failed(self, receipt: str, error: Exception) -> None:
        self._unrecorded += 1
        late = isinstance(error, TimeoutError)
        # That it is also slow, now that nobody waits for long, is no news.
        detail = (self._trouble or "the store did not answer in time") if late else str(error)
        if self._trouble != detail:
            _log.error("%s was answered but not recorded: %s", receipt, detail)
        self._trouble = detail


class _Landing:
    """Brings results from the writer's thread to the event loop: a batch's futures resolve together, and one wake-up of
    the loop is enough for them.
    """

    def __init__(self) -> None:
        self._landed: deque[tuple[asyncio.Future[Appended], Future[Appended]]] = deque()
        self._called = False

    async def awaited(self, written: "Future[Appended]", seconds: float) -> Appended:
        """The same result, for the loop that runs. Cancelling it changes nothing in the store. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Appended] = loop.create_future()
        patience = loop.call_later(seconds, _too_late, future)  # asyncio.timeout costs more

        def landed(done: "Future[Appended]") -> None:
            self._landed.append((future, done))
            if not self._called:
                self._called = True
                loop.call_soon_threadsafe(self._hand_out)

        written.add_done_callback(landed)
        try:
            return await future
        finally:
            patience.cancel()

    def _hand_out(self) -> None:
        self._called = False  # before looking: what comes from here on calls again
        while self._landed:
            future, done = self._landed.popleft()
            error = done.exception()
            if future.done():  # nobody waits for it any more; a late failure is already counted
                continue
            if error is None:
                future.set_result(done.result())
            else:
                future.set_exception(error)


def _too_late(future: "asyncio.Future[Appended]") -> None:
    if not future.done():
        future.set_exception(TimeoutError())
