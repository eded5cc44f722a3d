"""How long a provider is waited for: until it takes the connection, until it says something, until it goes on."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from daemon.core.errors import EngineError
from daemon.core.providers import RemoteConfig
from daemon.engines.base import RelayRequest
from daemon.engines.remote import Remote
from tests.fakes.provider import Fault, running_provider

BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
ASK = RelayRequest("POST", "/chat/completions", [(b"content-type", b"application/json")], BODY)


@contextmanager
def a_full_house() -> Iterator[str]:
    """A port that takes no connection and refuses none: its queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        time.sleep(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


async def asked(url: str, *, connect: float = 10.0, read: float = 600.0) -> float:
    """Seconds until it was given up."""
    remote = Remote("far", RemoteConfig(base_url=url, connect_seconds=connect, read_seconds=read))
    started = time.monotonic()
    try:
        with pytest.raises(EngineError, match=r"in time|for too long") as caught:
            await _whole(remote)
        assert caught.value.hint == "reef doctor"
        return time.monotonic() - started
    finally:
        await remote.close()


async def _whole(remote: Remote) -> None:
    response = await remote.relay(ASK)
    try:
        async for _ in response.chunks():
            pass
    finally:
        await response.close()


async def test_a_connection_that_nobody_takes() -> None:
    with a_full_house() as url:
        assert 0.2 < await asked(url, connect=0.3) < 600  # the other deadline


async def test_an_answer_that_does_not_begin() -> None:
    with running_provider() as provider:
        provider.faults.append(Fault(hang=True))
        assert await asked(f"{provider.url}/v1", read=0.3) > 0.2


async def test_an_answer_that_does_not_go_on() -> None:
    with running_provider() as provider:
        provider.pace = 600.0
        assert await asked(f"{provider.url}/v1", read=0.3) > 0.2


async def test_a_slow_answer_that_goes_on_is_none_of_these() -> None:
    with running_provider() as provider:
        provider.pace = 0.2  # ten events and more: longer than the deadline together
        remote = Remote("far", RemoteConfig(base_url=f"{provider.url}/v1", read_seconds=1.8))
        await _whole(remote)
        await remote.close()


async def test_a_refusal_that_comes_before_the_body_was_sent_is_read() -> None:
    """A provider with a limit answers 413 after the head and closes, while 30 MB are on their way."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 7\r\n\r\ntoo big")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    remote = Remote("far", RemoteConfig(base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    body = b'{"a":"' + b"x" * (30 << 20) + b'"}'
    response = await remote.relay(RelayRequest("POST", "/messages", [], body))
    assert response.status == 413
    assert b"".join([chunk async for chunk in response.chunks()]) == b"too big"
    await response.close()
    await remote.close()
    server.close()
    await server.wait_closed()
