"""Whoever stops in the middle, provider or client: given up in the end, told in the dialect's own form, recorded.

The daemon is told to be impatient; what it waits for by itself is minutes.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import IncompleteRead
from typing import Any

import pytest
import uvicorn

from daemon.core.config import parse
from daemon.core.paths import Home
from daemon.server.app import build
from daemon.server.auth import Tokens
from daemon.server.protocol import Connection
from daemon.server.runtime import Runtime, running
from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Fault, Provider, Turn, running_provider

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
EVERY = pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
#: By a provider that speaks what is asked, and by one that speaks another dialect only.
PAIRS = [
    (CHAT, "any"),
    (MESSAGES, "any"),
    (RESPONSES, "any"),
    (CHAT, "messages"),
    (MESSAGES, "chat"),
    (RESPONSES, "chat"),
]
ENGINES = pytest.mark.parametrize(("path", "engine"), PAIRS)


TURNS = (Turn("Hello after a while."),)


CONFIG = """
server: {port: 0}
engine: any
engines:
  any: {base_url: "$URL/v1", read_seconds: 0.3, dialects: [chat, messages, responses]}
  chat: {base_url: "$URL/v1", read_seconds: 0.3, dialects: chat}
  messages: {base_url: "$URL/v1", read_seconds: 0.3, dialects: messages, api: anthropic}
models: {chat: chat, messages: messages}
"""


def ask(model: str = "any", *, stream: bool) -> dict[str, Any]:
    said = [{"role": "user", "content": "hi"}]
    return {"model": model, "max_tokens": 50, "stream": stream, "messages": said, "input": said}


def told(path: str, raw: bytes) -> str:
    """The message of the error that an answer ends with, where its clients look for it."""
    found = json.loads(raw.split(b"data: ")[-1])
    if path == RESPONSES and "response" in found:
        assert (found["type"], found["response"]["status"]) == ("response.failed", "failed")
        found = found["response"]
    elif path == MESSAGES:
        assert (found["type"], found["error"]["type"]) == ("error", "api_error")
    return str(found["error"]["message"])


@ENGINES
@pytest.mark.parametrize("stream", [True, False])
def test_a_provider_that_does_not_begin(
    daemon: RunningDaemon, provider: Provider, path: str, engine: str, stream: bool
) -> None:
    provider.faults.append(Fault(hang=True))
    status, headers, raw = daemon.post(path, ask(engine, stream=stream))
    assert (status, told(path, raw)) == (502, "127.0.0.1 did not answer in time (reef doctor)")
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert (row["end"], row["status"], row["error"]) == ("error", 502, "127.0.0.1 did not answer in time")


def answered(
    daemon: RunningDaemon, path: str, engine: str, *, stream: bool
) -> tuple[int, bytes | None, dict[str, Any]]:
    """Status, body (None: its connection broke before its end) and record."""
    response = daemon.open(path, ask(engine, stream=stream))
    raw: bytes | None
    try:
        raw = response.read()
    except IncompleteRead:
        raw = None
    return response.status, raw, daemon.get(f"/reef/records/{response.headers['x-reef-agent-record-id']}")


@ENGINES
def test_a_stream_that_does_not_go_on(daemon: RunningDaemon, provider: Provider, path: str, engine: str) -> None:
    """Clients of chat ask again after a connection that broke, not after an error inside the answer."""
    provider.pace = 600.0
    status, raw, row = answered(daemon, path, engine, stream=True)
    assert (status, row["end"]) == (200, "incomplete")
    assert row["error"].endswith("nothing came for too long")
    assert raw is None if path == CHAT else raw and told(path, raw).endswith("nothing came for too long (reef doctor)")


@ENGINES
def test_a_whole_answer_that_does_not_go_on(daemon: RunningDaemon, provider: Provider, path: str, engine: str) -> None:
    """What is passed on breaks where it broke; what would have been written anew is an error."""
    provider.pace = 600.0
    status, raw, row = answered(daemon, path, engine, stream=False)
    assert row["error"].endswith("nothing came for too long")
    if engine == "any":
        assert (status, raw, row["end"]) == (200, None, "incomplete")
    else:
        assert (status, row["end"]) == (502, "error")
        assert raw
        assert told(path, raw).endswith("nothing came for too long (reef doctor)")


# -- clients -----------------------------------------------------------------------------------------


class Impatient(Connection):
    stalled_seconds = 0.2
    body_seconds = 0.2


@asynccontextmanager
async def impatient(home: Home, provider: Provider) -> AsyncIterator[tuple[Runtime, int]]:
    """A whole daemon in this process, and its port."""
    config = parse(f"engine: far\nengines: {{far: {{base_url: '{provider.url}/v1'}}}}")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    port = listener.getsockname()[1]
    async with running(home, config, config_path=None, tokens=Tokens.load(home), port=port) as runtime:
        served = uvicorn.Config(build(runtime), http=Impatient, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(served)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield runtime, port
        finally:
            server.should_exit = True
            await serving


def head(runtime: Runtime, path: str, length: int) -> bytes:
    fields = ("host: 127.0.0.1", "content-type: application/json", f"authorization: Bearer {runtime.tokens.agent}")
    return "\r\n".join((f"POST {path} HTTP/1.1", *fields, f"content-length: {length}", "", "")).encode()


@EVERY
async def test_a_client_that_stops_inside_its_body(reef_home: Home, provider: Provider, path: str) -> None:
    before = len(provider.requests)
    async with impatient(reef_home, provider) as (runtime, port), asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(runtime, path, 1000) + b'{"model": "m"')
        raw = await reader.read()
        writer.close()
    assert raw.startswith(b"HTTP/1.1 408 ")
    assert "nothing more of the body came" in told(path, raw.partition(b"\r\n\r\n")[2])
    assert len(provider.requests) == before


@EVERY
async def test_a_client_that_takes_nothing_of_its_answer(reef_home: Home, one_provider: Provider, path: str) -> None:
    """The provider's connection is not held for it."""
    body = json.dumps(ask(stream=True)).encode()
    with running_provider((Turn("word " * 5_000),)) as provider:
        async with impatient(reef_home, provider) as (runtime, port), asyncio.timeout(20):
            with socket.socket() as silent:
                silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                silent.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(silent, ("127.0.0.1", port))
                await loop.sock_sendall(silent, head(runtime, path, len(body)) + body)
                while not (rows := runtime.store.records()[0]):
                    await asyncio.sleep(0.01)
            assert rows[0].end == "cancelled"
