"""A request on its way in: its body up to a limit, its encoding undone for reading, and whether its client is there.

Bytes are only read here. A client that left must end the work for it within a second, whatever that work waits for.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, TypeVar

from starlette.types import Message, Receive, Scope

from daemon.core.errors import BadRequest, TooLarge, TooSlow
from daemon.server.protocol import Connection
from daemon.wire.encoding import TooLong, Undecodable, decoded

_T = TypeVar("_T")
_DISCARD_SECONDS: Final = 2.0


class ClientGone(Exception):
    """The client left while its request was being read."""


async def plain(body: bytes, encoding: str, limit: int) -> bytes:
    """A request's body as routing reads it; what goes upstream stays as it came. Raises BadRequest, and TooLarge where
    more than ``limit`` bytes come out of it.
    """
    if not encoding:
        return body
    try:
        return await asyncio.to_thread(decoded, body, encoding, limit)
    except TooLong as error:
        raise TooLarge(str(error), hint="set server.max_body_mb") from None
    except Undecodable as error:
        raise BadRequest(str(error), hint="send the body uncompressed") from None


async def until_gone(
    work: Coroutine[object, object, _T], scope: Scope, *, left: Callable[[], None] = lambda: None
) -> _T | None:
    """Run ``work``; cancel it as soon as the client disconnects, after calling ``left``. None then, where it gives up.

    In the task of the caller, so who cancels that cancels ``work`` too.
    """
    connection: Connection | None = scope.get("reef.connection")
    if connection is None:  # called by a program in its own process, which does not leave
        return await work
    task, gone = asyncio.current_task(), False
    assert task is not None

    def disconnected() -> None:
        nonlocal gone
        gone = True
        left()
        task.cancel()

    connection.when_gone(disconnected)
    try:
        return await work
    except asyncio.CancelledError:
        if not gone or task.cancelling() > 1:
            raise
        return None
    finally:
        if gone:
            task.uncancel()
        connection.when_gone(None)


async def discard(receive: Receive) -> None:
    """Take what the client still sends, for a while: closed in the middle of sending, it would not read our answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while (await receive()).get("more_body"):
                pass


async def read_body(scope: Scope, receive: Receive, limit: int, *, patience: float = Connection.body_seconds) -> bytes:
    """The whole body. Raises ClientGone, TooSlow after a pause of its connection's ``body_seconds`` (``patience``
    without one), and TooLarge: at once where the client asks first (``expect``), else after the body has gone by, since
    most clients only look for an answer once they have sent everything.
    """
    headers = dict(scope["headers"])
    told = headers.get(b"content-length", b"")
    if b"expect" in headers and told.isdigit() and int(told) > limit:
        raise _too_large(int(told), limit)
    connection: Connection | None = scope.get("reef.connection")
    patience = patience if connection is None else connection.body_seconds
    parts: list[bytes] = []
    size = 0
    while True:
        here = connection is not None and connection.has_body()
        message = await (receive() if here else _part(receive, size, patience))
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            parts.clear()
        else:
            parts.append(part)
        if not message.get("more_body"):
            break
    if size > limit:
        raise _too_large(size, limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _part(receive: Receive, size: int, patience: float) -> Message:
    try:
        async with asyncio.timeout(patience):
            return await receive()
    except TimeoutError:
        raise TooSlow(
            f"nothing more of the body came for {patience:.0f} s, after {size} bytes", hint="send the request again"
        ) from None


def _too_large(size: int, limit: int) -> TooLarge:
    return TooLarge(f"the body has {size} bytes, the limit is {limit}", hint="set server.max_body_mb")
