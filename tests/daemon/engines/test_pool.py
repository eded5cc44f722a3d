"""What a provider sends comes through whole however it is cut, and it counts as silent exactly when it is."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from daemon.core.errors import EngineError
from daemon.core.providers import RemoteConfig
from daemon.engines.base import RelayRequest, RelayResponse
from daemon.engines.remote import Remote

Send = Callable[[asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def answer(send: Send, read_seconds: float) -> AsyncIterator[RelayResponse]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        await send(writer)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        over.set()

    over = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    remote = Remote("far", RemoteConfig(base_url=url, read_seconds=read_seconds))
    response = await remote.relay(RelayRequest("GET", "/models", [], b""))
    try:
        yield response
    finally:
        await response.close()
        await remote.close()
        await over.wait()
        server.close()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def test_more_than_is_buffered_comes_whole_to_who_reads_slowly() -> None:
    """The provider's connection is paused meanwhile, for longer than it may be silent."""
    pieces = [b"%07d" % number * 100 for number in range(12_000)]

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.writelines([chunk(piece) for piece in pieces])
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    got: list[bytes] = []
    async with answer(send, read_seconds=0.3) as response:
        async for data in response.chunks():
            if len(got) < 2:
                await asyncio.sleep(0.4)
            got.append(data)
    assert b"".join(got) == b"".join(pieces)


async def test_silence_begins_with_the_last_bytes() -> None:
    said: list[float] = []

    async def send(writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await asyncio.sleep(0.15)
            writer.write(chunk(b"x"))
            said.append(time.monotonic())

    async with answer(send, read_seconds=0.3) as response:
        with pytest.raises(EngineError, match="nothing came for too long"):
            async for _ in response.chunks():
                pass
    assert len(said) == 3
    assert time.monotonic() - said[-1] > 0.29
