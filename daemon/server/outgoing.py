"""What goes back to the client: bytes pass at once, the last ones wait until the record is on disk.

It must never change, reorder or lose a byte of what it is fed.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from starlette.types import Send

from daemon.core.errors import EngineError
from daemon.engines.base import Headers
from daemon.server.exchange import RECORDED, Call
from daemon.server.pulse import Pulse
from daemon.wire.encoding import Undecodable, Undoing, decoded
from daemon.wire.sse import LIMIT, Relay, says_nothing, whole

SSE: Final = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
JSON: Final = [(b"content-type", b"application/json")]
#: Answers that have no body, and must not tell of its length.
_BODILESS: Final = (204, 304)


def header(headers: Headers, name: bytes) -> str:
    """The first header of that (lower-case) name; empty when there is none."""
    return next((value for key, value in headers if key.lower() == name), b"").decode("latin-1")


class Outgoing:
    """The response on its way out: passes bytes on at once, keeps the last ones until `finish`.

    "Last" is an SSE stream's terminal event, or the last chunk of anything else. The first ones wait too, while a
    stream only says that it is alive: until then it can still become an error of its own.
    """

    def __init__(self, call: Call, send: Send) -> None:
        self._call = call
        self._send = send
        #: The response's body so far, as `captured`; another list where another answer began.
        self.chunks: list[bytes] = []
        #: Set whenever there is more of it: by those who watch, None where nobody does.
        self.watched: Iterable[asyncio.Event] | None = None
        self._room = RECORDED
        self._held = b""
        self._early = b""
        self._relay: Relay | None = None
        self._headers: Headers = []
        self._pulse: Pulse | None = None
        self._writing = False
        self._undo: Undoing | None = None
        #: The head went out: an answer's, or ours before the first keep-alive.
        self.started = False
        #: An answer's own head has come.
        self.begun = False

    def keep_alive(self, seconds: float) -> None:
        """From now on a stream that is silent for so long gets the dialect's keep-alive, until `finish` or `leave`."""
        self._pulse = Pulse(seconds, self._keep_alive)

    def leave(self) -> None:
        """Send nothing of our own accord any more."""
        if self._pulse is not None:
            self._pulse.stop()
            self._pulse = None

    async def _keep_alive(self) -> None:
        """Only between two events: never inside one, nor where the client does not read, nor once the answer has said
        why it ends: OpenAI's client takes the usage from the last chunk.
        """
        call, relay = self._call, self._relay
        if self._writing or (self.begun and (relay is None or relay.finishing or not relay.between)):
            return
        if not self.started:  # a status cannot be told any more, yet without a word the client would give up
            if not self.begun:
                call.status, call.stream = 200, True
                self._headers = [*SSE, *self._own()]
                self._relay = Relay()
            await self._start()
        early, self._early = self._early, b""
        await self._send({"type": "http.response.body", "body": early + call.keepalive(), "more_body": True})

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
        return b"".join(self.chunks)

    async def begin(self, status: int, headers: Headers) -> None:
        """Take status and headers; a stream's go out with its first word, and the receipt with them."""
        call = self._call
        self.begun = True
        encoding = header(headers, b"content-encoding")
        if self.started:  # as plain events
            self._undo = Undoing(encoding) if encoding else None
            return
        call.status, call.encoding = status, encoding
        self._headers = [*headers, *self._own()]
        call.stream = header(headers, b"content-type").lower().startswith("text/event-stream")
        if call.stream:
            # Its end is what follows the last bytes: with a length a client would take those for it, before the record
            # is on disk, and nothing of ours could stand in the place of what is missing.
            self._headers = [pair for pair in self._headers if pair[0].lower() != b"content-length"]
            self._relay = Relay() if not call.encoding else None
            if self._relay is None:
                await self._start()

    def take_back(self) -> None:
        """What began has said nothing, of which nothing has gone out: another answer may begin."""
        self.begun, self._relay = False, None
        self.chunks, self._room = [], RECORDED
        self._early = b""

    async def feed(self, chunk: bytes) -> None:
        """Pass on what may go; keep the rest."""
        self._call.first_byte()
        if self._undo is not None:
            try:
                chunk = self._undo.feed(chunk)
            except Undecodable as error:
                raise EngineError(f"the provider's answer cannot be read: {error}", hint="reef doctor") from None
        self._capture(chunk)
        if self._relay is not None:
            ready = self._relay.feed(chunk)
            if not self.started and len(self._early) < LIMIT and says_nothing(ready):
                ready, self._early = b"", self._early + ready
            else:
                ready, self._early = self._early + ready, b""
        else:
            ready, self._held = self._held, chunk
        if ready:
            await self._write(ready, more=True)

    def hold(self, data: bytes) -> None:
        """Add bytes to what goes out at the end."""
        self._capture(data)
        self._held = self._take() + data
        self._relay = None

    def end_with(self, event: bytes) -> bool:
        """Put an event of ours in the place of one that stayed unfinished. False where bytes of it are out already."""
        if not self.started or self._relay is None or not self._relay.between:
            return False
        self._held, self._relay = event, None
        return True

    def end_after(self, event: bytes) -> None:
        """Put an event of ours behind what is held: the stream's last one, which does not say to this dialect's clients
        that it is.
        """
        if self._relay is not None:
            self._held, self._relay = self._take() + event, None

    def _capture(self, chunk: bytes) -> None:
        """Keep it for the record, up to what one may hold: a provider may send without end."""
        self.chunks.append(chunk[: self._room])
        self._call.cut = self._call.cut or len(chunk) > self._room
        self._room = max(0, self._room - len(chunk))
        for event in self.watched or ():
            event.set()

    def replace(self, status: int, headers: Headers, body: bytes) -> None:
        """Nothing has gone out: answer this instead."""
        self._call.status = status
        self._call.stream = False
        self._call.encoding = ""
        self._headers = [*headers, *self._own()]
        self.chunks = [body]
        self._held, self._early = body, b""
        self._relay = None

    async def flush(self) -> None:
        """Send what is held without ending the response."""
        if held := self._take():
            await self._write(held, more=True)

    async def finish(self) -> None:
        """Send the last bytes."""
        self.leave()
        await self._write(self._take(), more=False)

    def _take(self) -> bytes:
        held, self._held, self._early = self._early + self._held, b"", b""
        return held + (self._relay.release() if self._relay is not None else b"")

    async def _write(self, data: bytes, *, more: bool) -> None:
        if not self.started:
            bodiless = self._call.status in _BODILESS
            if not more and not bodiless and not any(name.lower() == b"content-length" for name, _ in self._headers):
                self._headers.append((b"content-length", str(len(data)).encode()))
            await self._start()
        self._writing = True
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._writing = False
        if self._pulse is not None:
            self._pulse.felt()

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
