"""What a connection may do before anybody knows whose it is."""

import asyncio
import socket
from contextlib import suppress

import uvicorn
from starlette.types import Receive, Scope, Send

from daemon.server.incoming import read_body, until_gone
from daemon.server.protocol import Connection
from tests.fakes.daemon import RunningDaemon

CONFIG = "server: {port: 0}"


def test_a_head_without_end_is_cut_off(daemon: RunningDaemon) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n")
        sent = 0
        with suppress(OSError):
            while sent < 1000:
                raw.sendall(b"x-filler: " + b"a" * 65_536 + b"\r\n")
                sent += 1
    assert sent < 1000


def test_a_large_head_that_ends_is_read(daemon: RunningDaemon) -> None:
    headers = daemon.headers() | {"x-large": "a" * 100_000}
    assert daemon.open("/v1/models", b"", headers=headers, method="GET").status == 200


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        raise AssertionError("nothing was asked")

    config = uvicorn.Config(app, http=Connection, lifespan="off", timeout_keep_alive=1, log_config=None, port=0)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for said in (b"", b"GET / HTTP/1.1\r\nhost: "):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
    server.should_exit = True
    await serving


async def test_a_client_that_stops_reading_is_left_in_the_end() -> None:
    class Impatient(Connection):
        stalled_seconds = 0.1

    gone = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        watch = asyncio.create_task(_until_gone(receive, gone))
        while not gone.is_set():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        await watch

    config = uvicorn.Config(app, http=Impatient, lifespan="off", log_config=None, port=0)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with socket.socket() as reads_nothing:
        reads_nothing.setblocking(False)
        await asyncio.get_running_loop().sock_connect(reads_nothing, ("127.0.0.1", port))
        await asyncio.get_running_loop().sock_sendall(reads_nothing, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(60):
            await gone.wait()
    server.should_exit = True
    await serving


async def test_a_client_that_leaves_after_a_large_body_is_noticed() -> None:
    """Its last bytes stop the reading, and with it the sight of the connection's end."""
    began, read, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        began.set()
        await read_body(scope, receive, 1 << 20)
        read.set()
        await until_gone(asyncio.Event().wait(), scope, left=gone.set)

    config = uvicorn.Config(app, http=Connection, lifespan="off", log_config=None, port=0)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 70000\r\n\r\n")
    async with asyncio.timeout(60):
        await began.wait()
        writer.write(bytes(70_000))
        await read.wait()
        writer.close()
        await gone.wait()
    server.should_exit = True
    await serving


async def _until_gone(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()
