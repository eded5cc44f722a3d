"""A request's body on its way in, and work that ends with its client."""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from daemon.core.errors import BadRequest, TooLarge, TooSlow
from daemon.server.incoming import ClientGone, plain, read_body, until_gone


def sending(*messages: dict[str, Any]) -> Callable[[], Any]:
    """An ASGI ``receive`` that says these, then nothing."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def scope(**headers: str) -> dict[str, Any]:
    return {"headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]}


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_pieces_is_put_together() -> None:
    receive = sending(part(b"ab", more=True), part(b"", more=True), part(b"c", more=False))
    assert await read_body(scope(), receive, 3) == b"abc"


async def test_a_body_over_the_limit_is_taken_whole_and_then_refused() -> None:
    receive = sending(part(b"ab", more=True), part(b"cd", more=False))
    with pytest.raises(TooLarge, match="the body has 4 bytes, the limit is 3"):
        await read_body(scope(), receive, 3)


async def test_who_asks_first_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TooLarge):
        await read_body(scope(expect="100-continue", content_length="4"), sending(), 3)


async def test_a_client_that_leaves_while_it_sends_is_gone() -> None:
    with pytest.raises(ClientGone):
        await read_body(scope(), sending(part(b"a", more=True), {"type": "http.disconnect"}), 3)


class _Leaving:
    """A connection whose client leaves as soon as somebody wants to know."""

    def when_gone(self, left: Callable[[], None] | None) -> None:
        if left is not None:
            asyncio.get_running_loop().call_soon(left)


class _Staying:
    def when_gone(self, left: Callable[[], None] | None) -> None:
        pass


async def test_work_ends_with_its_client() -> None:
    ended = asyncio.Event()

    async def work() -> bool:
        try:
            return await asyncio.Event().wait()
        finally:
            ended.set()

    assert await until_gone(work(), {"reef.connection": _Leaving()}) is None
    assert ended.is_set()


async def test_work_that_ends_first_gives_its_result() -> None:
    async def work() -> int:
        return 7

    assert await until_gone(work(), {"reef.connection": _Staying()}) == 7


async def test_an_encoding_is_undone_or_refused_by_name() -> None:
    assert await plain(gzip.compress(b"{}"), "gzip", 2) == b"{}"
    assert await plain(b"{}", "", 2) == b"{}"
    with pytest.raises(BadRequest, match="'br'"):
        await plain(b"{}", "br", 2)


async def test_a_client_that_stops_inside_its_body_is_told() -> None:
    with pytest.raises(TooSlow, match="after 3 bytes"):
        await read_body(scope(), sending(part(b"abc", more=True)), 100, patience=0.01)
