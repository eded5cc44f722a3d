"""One connection as uvicorn serves it, with bounds on what a client may do before it is known who it is.

Without them whoever can reach the port can fill the memory with one endless head, or hold a connection for ever
without a word. Once a head is read, `daemon.server.auth` and the limits on bodies take over.
"""

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final

from starlette.types import Message, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Agents send some kilobytes.
_HEAD_MOST: Final = 256 << 10


def dated(send: Send) -> Send:
    """The same, with the time as `date` on answers that bring none of their own (RFC 9110, section 6.6.1)."""

    async def passed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if not any(name.lower() == b"date" for name, _ in headers):
                message = {**message, "headers": [(b"date", formatdate(usegmt=True).encode()), *headers]}
        await send(message)

    return passed


class Connection(HttpToolsProtocol):
    """A head of at most 256 KiB, read within the keep-alive time; a client that stops reading is left in the end."""

    #: How long a client may read nothing while there is something to read.
    stalled_seconds = 300.0
    #: Longest pause of a client inside its body.
    body_seconds = 60.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._head_bytes = 0
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._left: Callable[[], None] | None = None

    def when_gone(self, left: Callable[[], None] | None) -> None:
        """``left`` is called once the client of the request that runs leaves, soon where it has; None: not any more."""
        self._left = left
        if left is None:
            return
        self.flow.resume_reading()  # the last bytes of a body may have paused it: nobody would see the connection end
        if self.transport.is_closing():
            self.loop.call_soon(self._gone)

    def has_body(self) -> bool:
        """Whether some of the body, or its end, is here already."""
        return self.cycle.message_event.is_set()

    def _gone(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._read_again()
        super().connection_lost(exc)
        self._gone()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            if self._patience is None:
                self._wait()
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_MOST and not self.transport.is_closing():
                self.send_400_response(f"The request's head is over {_HEAD_MOST} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._wait_no_more()  # a head that is here whole needs no patience
        self.scope["reef.connection"] = self  # type: ignore[typeddict-unknown-key]  # for `daemon.server.incoming`

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._wait_no_more()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client does not take what is sent. It holds a provider's connection meanwhile, so not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_again()

    def _read_again(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait(self) -> None:
        self._wait_no_more()
        self._patience = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
