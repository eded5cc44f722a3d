"""``GET /reef/live``: the calls that are being answered, and each answer as it comes.

``/reef/live/{receipt}`` is a stream of server-sent events: ``text`` (a kind, and more of it) from the beginning of the
answer, ``cut`` once where nothing more of it is shown, ``end`` last, when its record is on disk. At most ten times
a second.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import groupby
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon.core.errors import NotFound
from daemon.server.control import answer, runtime
from daemon.server.live import Flight

_PAUSE_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 15.0


async def listed(request: Request) -> Response:
    """Oldest first; ``chars`` is how much each said so far."""
    daemon, items = runtime(request), []
    for flight in daemon.live.since(0):
        await flight.read()
        items.append(await flight.told(daemon.store) | {"chars": flight.chars})
    return answer({"items": items})


async def watched(request: Request) -> Response:
    receipt = request.path_params["receipt"]
    flight = runtime(request).live.get(receipt)
    if flight is None:
        raise NotFound(f"no call {receipt!r} is being answered", hint=f"reef traces show {receipt}")
    return StreamingResponse(
        _events(flight, runtime(request).stopping),
        media_type="text/event-stream",
        headers={"cache-control": "no-cache"},
    )


async def _events(flight: Flight, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    yield b": reef\n\n"
    shown, cut = 0, False
    with flight.heard() as more:
        while not stopping.is_set():
            over = flight.over
            more.clear()
            await flight.read()
            new, shown = flight.pieces[shown:], len(flight.pieces)
            for kind, pieces in groupby(new, lambda piece: piece.kind):
                yield _framed("text", {"kind": kind, "text": "".join(piece.text for piece in pieces)})
            if flight.cut and not cut:
                cut = True
                yield _framed("cut", {})
            if over:
                yield _framed("end", {"end": flight.how()})
                return
            if not await _either(more, stopping):
                yield b": still here\n\n"
            await asyncio.sleep(_PAUSE_SECONDS)


async def _either(*events: asyncio.Event) -> bool:
    """Whether one of them is set before patience ends."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waiting, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
    return bool(done)


def _framed(event: str, data: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))
