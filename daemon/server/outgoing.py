"""What goes back to the client: bytes pass at once, the last ones wait until the record is on disk.

It must never change, reorder or lose a byte of what it is fed.
"""

import asyncio

from starlette.types import Send

from daemon.engines.base import Headers
from daemon.server.exchange import RECORDED, Call
from daemon.wire.encoding import Undecodable, decoded
from daemon.wire.sse import Relay, whole


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
        call = self._call
        own = [
            (b"x-reef-agent-record-id", call.receipt.encode()),
            (b"x-reef-release-id", call.served.release_id.encode()),
        ]
        return own if call.unrecorded is None else [*own, (b"x-reef-recording", call.unrecorded.encode())]


def _undone(body: bytes, encoding: str, stream: bool) -> Relay:
    return whole(decoded(body, encoding), stream=stream)
