"""Answers in another dialect are read whole, or event by event: a provider that never ends them is given up."""

import asyncio
from contextlib import suppress

import pytest

from daemon.core.errors import EngineError
from daemon.core.providers import RemoteConfig
from daemon.core.records import Dialect
from daemon.engines.remote import Remote
from daemon.server import translation
from daemon.server.translation import Translation
from daemon.wire.base import dialect as codec_of


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_what_never_ends_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """A provider that sends one line, or one answer, without end is given up."""
    monkeypatch.setattr(translation, "LAST_LIMIT", 1000)
    monkeypatch.setattr(translation, "RECORDED", 1000)
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = b"text/event-stream" if stream else b"application/json"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\n\r\ndata: ")
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"x" * 100)
                await writer.drain()
        gone.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        engine = Remote("p", RemoteConfig(base_url=f"http://127.0.0.1:{port}"))
        asked = codec_of(Dialect.CHAT).parse(b'{"model":"m","messages":[{"role":"user","content":"x"}]}')
        one = Translation(engine, Dialect.CHAT, asked, "rec_1")
        assert await one.ask([]) is None
        with pytest.raises(EngineError, match="only be read as one"):
            [event async for event in one.events()]
        await one.close()
        await engine.close()
        await gone.wait()
