"""One exchange while it happens: what is known of it (`Call`) and what goes back to the client (`Outgoing`)."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from starlette.types import Scope, Send

from daemon.core.ids import new_id
from daemon.core.records import Dialect, End, Exchange, TokenSpan, Transcript, Usage
from daemon.core.redact import Redactor
from daemon.engines.base import Headers, RelayRequest
from daemon.server.heads import BASE
from daemon.server.identity import Identity
from daemon.wire.base import dialect as codec_of
from daemon.wire.encoding import Undecodable, decoded, readable
from daemon.wire.sse import Relay, whole

#: How much of a response a record keeps; agents get all of it.
RECORDED: Final = 64 << 20


class Call:
    """The facts of one exchange, gathered as they become known; frozen into an `Exchange` at the end."""

    def __init__(self, dialect: Dialect, scope: Scope, redactor: Redactor) -> None:
        self.receipt = new_id("rec")
        self.dialect = dialect
        self.codec = codec_of(dialect)
        #: What serves it, from its arrival to its end.
        self.served = BASE
        self.identity: Identity | None = None
        self.request = b""
        self.engine = ""
        self.model_asked = ""
        self.status = 0
        self.stream = False
        self.encoding = ""
        self.end = End.OK
        self.error: str | None = None
        self.broken = False
        #: The daemon's end cut it off.
        self.stopped = False
        #: The response was longer than a record may be.
        self.cut = False
        self.weights: str | None = None
        self.span: TokenSpan | None = None
        self.usage: Usage | None = None
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._scope = scope
        self._redactor = redactor
        self._wall = time.time_ns()
        self._start = time.monotonic_ns()
        self._first: int | None = None

    def upstream(self) -> RelayRequest:
        """The same request, below a provider's base URL: ``/v1/messages?beta=true`` → ``/messages?beta=true``.

        It asks for an answer that can be recorded.
        """
        path = self._scope["path"].removeprefix("/v1")
        query = self._scope["query_string"].decode("latin-1")
        return RelayRequest(
            method=self._scope["method"],
            path=f"{path}?{query}" if query else path,
            headers=[
                (name, readable(value) if name == b"accept-encoding" else value)
                for name, value in self._scope["headers"]
            ],
            body=self.request,
        )

    def stop(self) -> None:
        """The daemon ends this call, not its client."""
        self.stopped = True

    def first_byte(self) -> None:
        if self._first is None:
            self._first = time.monotonic_ns()

    def exchange(self, response: bytes) -> Exchange:
        """What is to be kept of it. Call once, at the end."""
        who = self.identity
        assert who is not None, "a call without an identity is refused before it is served"
        return Exchange(
            receipt=self.receipt,
            scenario=who.scenario,
            dialect=self.dialect,
            path=self._scope["path"],
            started_ns=self._wall,
            duration_us=(time.monotonic_ns() - self._start) // 1000,
            first_byte_us=None if self._first is None else (self._first - self._start) // 1000,
            request=self.request,
            response=response,
            stream=self.stream,
            status=self.status,
            end=self.end,
            engine=self.engine,
            model_asked=self.model_asked,
            release_id=self.served.release_id,
            error=self.error,
            weights=self.weights,
            span=self.span,
            agent=who.agent,
            session_keys=who.session_keys,
            subagent=who.subagent,
            spawner=who.spawner,
            cwd=who.cwd,
            commit=who.commit,
            tags=who.tags,
            traceparent=self.headers.get("traceparent"),
        )

    def transcript(self, response: bytes) -> Callable[[], Transcript]:
        """The parsing of it, to be done off the event loop."""

        def parse() -> Transcript:
            made = self.codec.transcript(
                self.request,
                response,
                stream=self.stream,
                redact=self._redactor.redact,
                request_encoding=self.headers.get("content-encoding", ""),
                response_encoding=self.encoding,
            )
            if self.cut:
                note = f"only the first {RECORDED >> 20} MiB of the response are kept"
                made = replace(made, note=f"{made.note}; {note}" if made.note else note)
            # An engine of ours counted exactly, and a stream says nothing of it unless asked.
            return made if self.usage is None else replace(made, usage=self.usage)

        return parse


class Outgoing:
    """The response on its way out: passes bytes on at once, keeps the last ones until `finish`.

    "Last" is an SSE stream's terminal event, or the last chunk of anything else.
    """

    def __init__(self, call: Call, send: Send) -> None:
        self._call = call
        self._send = send
        self._captured: list[bytes] = []
        self._room = RECORDED
        self._held = b""
        self._relay: Relay | None = None
        self._headers: Headers = []
        self.started = False

    async def verdict(self) -> tuple[bool, bool]:
        """Whether what passed was complete by its own dialect's word (always, unless it was an SSE stream), and whether
        it told of a failure inside its 200.
        """
        relay, call = self._relay, self._call
        if relay is not None:
            return relay.complete, relay.failed
        if not call.encoding:
            return True, whole(self.captured(), stream=False).failed
        try:
            relay = await asyncio.to_thread(_undone, self.captured(), call.encoding, call.stream)
        except Undecodable:
            return True, False
        return relay.complete or not call.stream, relay.failed

    def captured(self) -> bytes:
        """The response's body so far, sent or held; its first 64 MiB."""
        return b"".join(self._captured)

    async def begin(self, status: int, headers: Headers) -> None:
        """Take status and headers; a stream's go out at once, with the receipt."""
        call = self._call
        call.status = status
        self._headers = [*headers, *self._own()]
        named = {name.lower(): value for name, value in headers}
        call.encoding = named.get(b"content-encoding", b"").decode("latin-1")
        call.stream = named.get(b"content-type", b"").lower().startswith(b"text/event-stream")
        if call.stream:
            self._relay = Relay() if not call.encoding else None
            await self._start()

    async def feed(self, chunk: bytes) -> None:
        """Pass on what may go; keep the rest."""
        self._call.first_byte()
        self._capture(chunk)
        if self._relay is not None:
            ready = self._relay.feed(chunk)
        else:
            ready, self._held = self._held, chunk
        if ready:
            await self._write(ready, more=True)

    def hold(self, data: bytes) -> None:
        """Add bytes to what goes out at the end."""
        self._capture(data)
        self._held = self._take() + data
        self._relay = None

    def _capture(self, chunk: bytes) -> None:
        """Keep it for the record, up to what one may hold: a provider may send without end."""
        self._captured.append(chunk[: self._room])
        self._call.cut = self._call.cut or len(chunk) > self._room
        self._room = max(0, self._room - len(chunk))

    def replace(self, status: int, headers: Headers, body: bytes) -> None:
        """Nothing has gone out: answer this instead."""
        self._call.status = status
        self._call.stream = False
        self._call.encoding = ""
        self._headers = [*headers, *self._own()]
        self._captured = [body]
        self._held = body
        self._relay = None

    async def flush(self) -> None:
        """Send what is held without ending the response."""
        if held := self._take():
            await self._write(held, more=True)

    async def finish(self) -> None:
        """Send the last bytes."""
        await self._write(self._take(), more=False)

    def _take(self) -> bytes:
        held, self._held = self._held, b""
        return held + (self._relay.release() if self._relay is not None else b"")

    async def _write(self, data: bytes, *, more: bool) -> None:
        if not self.started:
            if not more and not any(name.lower() == b"content-length" for name, _ in self._headers):
                self._headers.append((b"content-length", str(len(data)).encode()))
            await self._start()
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _start(self) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": self._call.status, "headers": self._headers})

    def _own(self) -> Headers:
        return [
            (b"x-reef-agent-record-id", self._call.receipt.encode()),
            (b"x-reef-release-id", self._call.served.release_id.encode()),
        ]


def _undone(body: bytes, encoding: str, stream: bool) -> Relay:
    return whole(decoded(body, encoding), stream=stream)
