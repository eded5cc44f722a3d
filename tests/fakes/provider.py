"""A provider for tests: real HTTP on a loopback port, every dialect, a script of turns, and faults.

    with running_provider() as provider:              # the script TASK: text and a shell call, two calls, a final
    provider.url                                  # "http://127.0.0.1:PORT"; agents and clients append /v1/…
    provider.requests                             # what came in, in order: method, path, query, headers, body
    provider.faults.append(Fault(status=429, headers={"retry-after": "1"}))   # for the next inference request
    provider.faulty = lambda asked: …             # only for those, by the request's JSON
    provider.pace = 0.005                         # seconds between the events of a stream
    provider.gzip, provider.framing, provider.echo
    provider.reply = lambda asked: Turn(…)        # instead of the script: an answer made from the request's JSON

Which turn answers depends on the request alone: how many assistant messages follow the last message a person typed.
So retries, side calls and several agents at once need no state here. A call for ``bash`` goes to the tool that the
agent offers for it, whatever its name (Pi ``bash``, Claude Code ``Bash``, others by their ``command`` argument).
"""

import asyncio
import gzip
import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from daemon.wire.encoding import decoded
from tests.fakes import shapes
from tests.fakes.responses_shape import Responses

NO_CONTENT = 204
Shape = shapes.Chat | shapes.Messages | Responses

#: How events are written: as the vendors do, or as compatible servers have been seen to.
Framing = Literal["plain", "crlf", "no-space", "comments", "tiny", "halves", "no-end", "only-pings"]


@dataclass(frozen=True)
class Call:
    """A tool call. ``arguments`` as text is sent as it is, valid or not."""

    name: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True)
class Turn:
    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


#: What a small real task looks like; the second command of the second turn fails on purpose.
TASK = (
    Turn("I'll run a command.", (bash("echo hello-reef > hello.txt && cat hello.txt"),)),
    Turn("", (bash("ls -la hello.txt"), bash("wc -c hello.txt; exit 3"))),
    Turn("Done: I created hello.txt containing the line hello-reef (11 bytes)."),
)


@dataclass(frozen=True)
class Fault:
    """What happens to one inference request instead of its answer.

    ``status``: that error, in the dialect's shape, with ``headers``. ``drop``: the connection breaks before the first
    byte. ``after``: it breaks after so many events. ``hang``: nothing comes until the client leaves. ``error_after``:
    after so many events an error event ends the stream, inside the 200. ``wait``: so many seconds pass before anything
    else, also before the answer; ``held``: until the test sets it, after ``held_at`` events of the answer.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    after: int | None = None
    hang: bool = False
    error_after: int | None = None
    wait: float = 0.0
    held: threading.Event | None = None
    held_at: int = 0
    #: What the error of ``status`` says.
    message: str = ""


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def json(self) -> Any:
        return json.loads(decoded(self.body, self.header("content-encoding") or ""))


class Provider:
    """See the module. Attributes may be set at any time; they count from the next request on."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = tuple(turns)
        self.url = ""
        self.requests: list[Received] = []
        self.faults: deque[Fault] = deque()
        self.faulty: Callable[[Any], bool] = bool
        self.pace = 0.0
        self.gzip = False
        self.framing: Framing = "plain"
        self.echo = False
        self.reply: Callable[[Any], Turn] | None = None
        self.headers: dict[str, str] = {"x-request-id": "req_fake", "request-id": "req_fake"}
        self.sent = 0
        self.connections = 0
        self.lost = 0
        self.transports: dict[tuple[str, int], asyncio.Transport] = {}

    def config(self, **engine: object) -> str:
        """A daemon's configuration with this provider as its only engine, ``p``; ``engine`` says more of it."""
        settings = json.dumps({"p": {"base_url": f"{self.url}/v1", **engine}})
        return f"server: {{port: 0}}\nengine: p\nengines: {settings}\n"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/responses", self._responses, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/{path:path}", self._unknown, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )

    async def _note(self, request: Request) -> Received:
        headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in request.headers.raw]
        received = Received(request.method, request.url.path, request.url.query, headers, await request.body())
        self.requests.append(received)
        return received

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, shapes.Chat)

    async def _messages(self, request: Request) -> Response:
        return await self._answer(request, shapes.Messages)

    async def _responses(self, request: Request) -> Response:
        return await self._answer(request, Responses)

    async def _answer(self, request: Request, shape: type[Shape]) -> Response:
        received = await self._note(request)
        asked = received.json()
        fault = self.faults.popleft() if self.faults and self.faulty(asked) else Fault()
        dialect = shape(asked, len(received.body))
        transport = self.transports[request.client or ("", 0)]
        await asyncio.sleep(fault.wait)
        await _let_go(fault, 0)
        if fault.drop:
            transport.abort()
        if fault.hang:
            await _left(request)
        if fault.status is not None:
            error = dialect.error(fault.status)
            error["error"]["message"] = fault.message or error["error"]["message"]
            return JSONResponse(error, fault.status, {**self.headers, **fault.headers})
        text, calls, thinking = self._turn(received, dialect)
        if not asked.get("stream"):
            body = shapes.written(dialect.body(text, calls, thinking))
            if not self.pace:
                return self._whole(body, "application/json")
            halves = self._paced([body[: len(body) // 2], body[len(body) // 2 :]], fault, transport)
            return StreamingResponse(halves, media_type="application/json", headers=self.headers)
        events = self._framed(dialect.events(text, calls, thinking))
        if fault.error_after is not None:
            events = [*events[: fault.error_after], dialect.error_event()]
        if self.gzip:
            return self._whole(b"".join(events), "text/event-stream")
        return StreamingResponse(
            self._paced(events, fault, transport), media_type="text/event-stream", headers=self.headers
        )

    def _turn(self, received: Received, dialect: Shape) -> tuple[str, list[tuple[str, str]], str]:
        if self.echo:
            return hashlib.sha256(received.body).hexdigest(), [], ""
        scripted = self.turns[min(dialect.answered(), len(self.turns) - 1)]
        turn = scripted if self.reply is None else self.reply(received.json())
        calls = [
            (dialect.tool(call.name), call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments))
            for call in turn.calls
        ]
        return turn.text, calls, turn.thinking

    def _whole(self, body: bytes, kind: str) -> Response:
        headers = {**self.headers, "content-encoding": "gzip"} if self.gzip else self.headers
        return Response(gzip.compress(body) if self.gzip else body, media_type=kind, headers=headers)

    def _framed(self, events: list[bytes]) -> list[bytes]:
        if self.framing == "crlf":
            return [event.replace(b"\n", b"\r\n") for event in events]
        if self.framing == "no-space":
            return [event.replace(b"data: ", b"data:", 1).replace(b"event: ", b"event:", 1) for event in events]
        if self.framing == "comments":
            return [b": OPENROUTER PROCESSING\n\n" + event for event in events]
        if self.framing == "tiny":
            whole = b"".join(events)
            return [whole[i : i + 7] for i in range(0, len(whole), 7)]
        if self.framing == "halves":
            return [half for event in events for half in (event[: len(event) // 2], event[len(event) // 2 :])]
        if self.framing == "only-pings":
            return [shapes.PING] * 3
        return events[:-1] if self.framing == "no-end" else events

    async def _paced(self, events: list[bytes], fault: Fault, transport: asyncio.Transport) -> AsyncIterator[bytes]:
        for i, event in enumerate(events):
            await _let_go(fault, i)
            if i == fault.after:
                await asyncio.sleep(0.01)  # let what was written leave before the connection breaks
                transport.abort()
                return
            yield event
            self.sent += len(event)
            if self.pace:
                await asyncio.sleep(self.pace)

    async def _count(self, request: Request) -> Response:
        received = await self._note(request)
        return await self._faulted(request, received) or JSONResponse({"input_tokens": len(received.body) // 4})

    async def _faulted(self, request: Request, received: Received) -> Response | None:
        """The fault of a request that is no conversation."""
        asked = received.json() if received.body else {"method": received.method}
        fault = self.faults.popleft() if self.faults and self.faulty(asked) else Fault()
        if fault.hang:
            await _left(request)
        if fault.status is None:
            return None
        if fault.status == NO_CONTENT:
            return Response(status_code=fault.status, headers=fault.headers)
        return JSONResponse(shapes.Messages({}, 0).error(fault.status), fault.status, {**self.headers, **fault.headers})

    async def _models(self, request: Request) -> Response:
        await self._note(request)
        model = {"id": "fake-model", "object": "model", "created": 1_700_000_000, "owned_by": "tests"}
        return JSONResponse({"object": "list", "data": [model]})

    async def _unknown(self, request: Request) -> Response:
        received = await self._note(request)
        if (faulted := await self._faulted(request, received)) is not None:
            return faulted
        if received.path.startswith("/v1/moved"):
            return Response(status_code=307, headers={"location": "/v1/models"})
        return JSONResponse({"error": {"message": "not found", "type": "not_found_error"}}, 404)


async def _let_go(fault: Fault, event: int) -> None:
    while event == fault.held_at and fault.held is not None and not fault.held.is_set():
        await asyncio.sleep(0.005)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _protocol(provider: Provider) -> type[HttpToolsProtocol]:
    """uvicorn's own, made to show the provider its connections, so that it can break them."""

    class Watched(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            provider.connections += 1
            provider.transports[transport.get_extra_info("peername")[:2]] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            provider.lost += 1

    return Watched


@contextmanager
def running_provider(turns: Sequence[Turn] = TASK, *, port: int = 0) -> Iterator[Provider]:
    """Serve until the block ends; on any free port unless one is given."""
    provider = Provider(turns)
    config = uvicorn.Config(
        provider.app(), port=port, http=_protocol(provider), ws="none", lifespan="off", log_config=None,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(
        target=loop.run_until_complete, args=(_serve(server, provider, stop),), name="fake provider"
    )
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the fake provider starts")
        provider.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        yield provider
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


async def _serve(server: uvicorn.Server, provider: Provider, stop: asyncio.Event) -> None:
    """What ``Server.serve`` does, without its signal handlers and its tenth of a second at each end."""
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup()
    await stop.wait()
    for transport in provider.transports.values():
        transport.abort()
    await asyncio.sleep(0.001)
    await server.shutdown()


def until(true: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Wait for a condition; fails the test when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain until {what}"
        time.sleep(0.005)
