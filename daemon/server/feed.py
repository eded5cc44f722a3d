"""``GET /reef/events``: what happens, as server-sent events: ``record``, ``report``, ``pin``, ``job``, ``release``,
``release_pin``, ``release_unpin``, ``engine``, ``model``, ``recording``, ``live``, ``scenario``, ``working``.

Every event's id says how far its reader is, and `Last-Event-ID` goes on from there: all records since, from the store,
and the news since, as far as they are kept. Where some are not, ``missed`` says so, and lists should be read again. A
call that began (``live``) is told only while it goes on. A reader that is slow or gone holds nothing here.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon.core.errors import UsageError
from daemon.server.control import is_number, read, runtime
from daemon.server.events import Changes, News
from daemon.server.runtime import Runtime

_PAGE: Final = 500
_PATIENCE_SECONDS: Final = 15.0


@dataclass(slots=True)
class Position:
    """The last record shown, and the last piece of news of this run."""

    seq: int
    told: int
    #: The last call that it was told of.
    begun: int
    #: The engines as it was told of them.
    engines: bytes = b""
    #: Why the reader must read its lists again.
    missed: str | None = None


async def events(request: Request) -> Response:
    daemon = runtime(request)
    newest, _ = await read(daemon.store.records, limit=1)
    position = _position(daemon, request.headers.get("last-event-id"), newest[0].seq if newest else 0)
    return StreamingResponse(
        _events(daemon, position), media_type="text/event-stream", headers={"cache-control": "no-cache"}
    )


def _position(daemon: Runtime, given: str | None, newest: int) -> Position:
    """``SEQ.RUN.NUMBER`` as events carry it, or a record's number alone. Raises UsageError for anything else."""
    changes = daemon.changes
    if not given:
        return Position(newest, changes.told, daemon.live.begun)
    seq, *rest = given.split(".")
    run, told = rest if len(rest) == 2 else (changes.run, str(changes.told))
    if not is_number(seq) or len(rest) not in (0, 2) or not is_number(told):
        raise UsageError(
            f"Last-Event-ID {given[:40]!r} is no event's id", hint="send back the id of an event as it was"
        )
    # A store that was put aside begins to count again: never wait for a number from before.
    position = Position(min(int(seq), newest), min(int(told), changes.told), daemon.live.begun)
    if run != changes.run:
        position.told, position.missed = 0, "the daemon was restarted"
    return position


async def _events(daemon: Runtime, at: Position) -> AsyncIterator[bytes]:
    changes = daemon.changes

    def framed(event: str, data: bytes) -> bytes:
        return b"id: %d.%s.%d\nevent: %s\ndata: %s\n\n" % (
            at.seq, changes.run.encode(), at.told, event.encode(), data,
        )  # fmt: skip

    yield b": reef\n\n"
    version = -1
    while not daemon.stopping.is_set():
        seen = changes.version
        if seen != version:
            version = seen
            news, lost = changes.news(at.told)  # before the records: what is said of one comes after it
            page, _ = await read(daemon.store.records, after=str(at.seq), limit=_PAGE)
            if (missed := _missed(changes, news, lost, at)) is not None:
                yield framed("missed", missed)
            async for call in _begun(daemon, at):  # before the records: one of them may be the call's own
                yield framed("live", call)
            for row in page:
                at.seq = row.seq
                yield framed("record", msgspec.json.encode(row))
            if len(page) == _PAGE:
                version = -1
                continue
            for event, data in _told(daemon, at, news):
                yield framed(event, data)
        if await changes.after(version, _PATIENCE_SECONDS) == version:
            yield b": still here\n\n"


def _missed(changes: Changes, news: list[News], lost: bool, at: Position) -> bytes | None:
    """What to tell a reader that cannot be told all."""
    if not lost and at.missed is None:
        return None
    reason = at.missed or "more happened than is kept"
    at.told, at.missed = news[0].number - 1 if news else changes.told, None
    return msgspec.json.encode({"reason": reason, "hint": "read the lists again"})


async def _begun(daemon: Runtime, at: Position) -> AsyncIterator[bytes]:
    """Calls that began meanwhile and go on; they are kept nowhere."""
    for flight in daemon.live.since(at.begun):
        at.begun = flight.number
        yield msgspec.json.encode(await flight.told(daemon.store))


def _told(daemon: Runtime, at: Position, news: list[News]) -> Iterator[tuple[str, bytes]]:
    """The news, and the engines where they changed."""
    for one in news:
        at.told = one.number
        yield one.event, one.data
    engines = msgspec.json.encode(daemon.engines())
    if engines != at.engines:
        at.engines = engines
        yield "engine", engines
