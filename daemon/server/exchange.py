"""One exchange while it happens: what is known of it, frozen into an `Exchange` at its end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from starlette.types import Scope

from daemon.core.ids import new_id
from daemon.core.prices import Price, cost
from daemon.core.records import Dialect, End, Exchange, TokenSpan, Transcript, Usage
from daemon.core.redact import Redactor
from daemon.engines.base import RelayRequest
from daemon.server.checkouts import UNKNOWN
from daemon.server.heads import BASE
from daemon.server.identity import Identity
from daemon.wire.base import Renderer
from daemon.wire.base import dialect as codec_of
from daemon.wire.encoding import readable

#: How much of a response a record keeps; agents get all of it.
RECORDED: Final = 64 << 20


class Call:
    """The facts of one exchange, gathered as they become known; frozen into an `Exchange` at the end.

    It must not be in a cycle of references: the bodies would stay in memory until the collector comes by.
    """

    def __init__(self, dialect: Dialect, scope: Scope, redactor: Redactor) -> None:
        self.receipt = new_id("rec")
        self.dialect = dialect
        self.codec = codec_of(dialect)
        #: How a stream that has begun tells of a failure.
        self.failure: Callable[[int, str, str], bytes] = self.codec.error_event
        #: What serves it, from its arrival to its end.
        self.served = BASE
        self.identity: Identity | None = None
        self.checkout = UNKNOWN
        #: Why no record is to be made of it (`daemon.server.privacy`).
        self.unrecorded: str | None = None
        self.request = b""
        self.engine = ""
        self.model_asked = ""
        #: What the engine calls that model, None: the same; and what its models cost.
        self.model_there: str | None = None
        self.prices: Mapping[str, Price] = {}
        self.status = 0
        self.stream = False
        self.encoding = ""
        self.end = End.OK
        self.error: str | None = None
        self.broken = False
        #: What makes the stream, where it is no provider.
        self.renderer: Renderer | None = None
        #: What cut it off: its client, or the daemon's end.
        self.left = self.stopped = False
        #: The response was longer than a record may be.
        self.cut = False
        self.weights: str | None = None
        self.span: TokenSpan | None = None
        self.usage: Usage | None = None
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._scope = scope
        self._redactor = redactor
        self.started_ns = time.time_ns()
        self._start = time.monotonic_ns()
        self._first: int | None = None

    def upstream(self) -> RelayRequest:
        """The same request, below a provider's base URL: ``/v1/messages?beta=true`` → ``/messages?beta=true``.

        The path as it came, not what its escapes stand for: that would be another one. It asks for an answer that can
        be recorded.
        """
        path = self._scope["raw_path"].decode("latin-1").removeprefix("/v1")
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

    def upstream_as(self, body: bytes) -> RelayRequest:
        """`upstream` with another body, which is not compressed."""
        request = self.upstream()
        headers = [(name, value) for name, value in request.headers if name != b"content-encoding"]
        return replace(request, headers=headers, body=body)

    def leave(self) -> None:
        """The client is gone."""
        self.left = True

    def keepalive(self) -> bytes:
        """What a stream says while there is nothing to say."""
        return self.codec.keepalive(self.model_asked) if self.renderer is None else self.renderer.keepalive()

    def first_byte(self) -> None:
        if self._first is None:
            self._first = time.monotonic_ns()

    def exchange(self, response: bytes) -> Exchange:
        """What is to be kept of it, as it stands."""
        who = self.identity
        assert who is not None, "a call without an identity is refused before it is served"
        return Exchange(
            receipt=self.receipt,
            scenario=who.scenario,
            dialect=self.dialect,
            path=self._scope["path"],
            started_ns=self.started_ns,
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
            # What belongs to no conversation is kept together, by what it asks for.
            session_keys=who.session_keys or ((self._scope["path"],) if self.dialect is Dialect.OTHER else ()),
            subagent=who.subagent,
            spawner=who.spawner,
            side=who.side or self.dialect is Dialect.OTHER,
            cwd=who.cwd,
            commit=who.commit,
            dirty=self.checkout.dirty,
            tags=who.tags,
            traceparent=self.headers.get("traceparent"),
            unrecorded=self.unrecorded,
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
            usage = made.usage if self.usage is None else self.usage
            paid = cost(usage, self.prices, (made.model, self.model_there, self.model_asked))
            return replace(made, usage=replace(usage, cost=paid))

        return parse
