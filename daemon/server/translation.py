"""One request for a provider that speaks another dialect: written anew for it, its answer read as an engine's events.

The agent sees its own dialect in everything: words, calls, thoughts, usage, errors. The provider's status and what it
says of retrying stay as they are.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from daemon.core.errors import EngineError
from daemon.core.generation import EngineEvent, ToolStart
from daemon.core.records import ChatRequest, Dialect
from daemon.engines.base import Headers, RelayEngine, RelayRequest, RelayResponse
from daemon.server.exchange import RECORDED
from daemon.server.outgoing import header
from daemon.wire import jsontext
from daemon.wire.base import dialect
from daemon.wire.concede import conceded
from daemon.wire.encoding import Undecodable, Undoing, decoded
from daemon.wire.errors import error_message
from daemon.wire.reader import Reader, tool_name
from daemon.wire.sse import LAST_LIMIT, EventReader

PATHS: Final = {
    Dialect.CHAT: "/chat/completions",
    Dialect.MESSAGES: "/messages",
    Dialect.RESPONSES: "/responses",
}
#: Where an engine speaks several: what says most first.
_PREFERRED: Final = (Dialect.RESPONSES, Dialect.MESSAGES, Dialect.CHAT)
#: What Anthropic's API asks of every request.
_VERSION: Final = (b"anthropic-version", b"2023-06-01")
_BEARER: Final = b"bearer "
#: A person's subscription, which Anthropic takes as a bearer only.
_SUBSCRIPTION: Final = b"sk-ant-oat"
_KEPT_UP: Final = frozenset((b"user-agent", b"traceparent", b"tracestate"))
_KEPT_DOWN: Final = (
    "retry-after", "x-ratelimit-", "anthropic-ratelimit-", "request-id", "x-request-id", "x-should-retry",
)  # fmt: skip
_ERROR: Final = 400
#: How often a request is sent again without what was refused of it.
_CONCESSIONS: Final = 3
_SAID_MOST: Final = 64 << 10


def spoken(engine: RelayEngine, wanted: Dialect) -> Dialect:
    """The dialect in which an engine is asked: the one that is wanted if it speaks it."""
    return next(one for one in (wanted, *_PREFERRED) if one in engine.dialects)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider's error: its status, what it said, and the headers that a client acts on."""

    status: int
    message: str
    headers: Headers


class Translation:
    """Asks ``engine`` what ``request`` asks, in a dialect of the engine's. Close it, whatever happened."""

    def __init__(self, engine: RelayEngine, target: Dialect, request: ChatRequest, receipt: str) -> None:
        self._engine = engine
        self._request = request
        self._dialect = target
        self._codec = dialect(self._dialect)
        self._receipt = receipt
        self._response: RelayResponse | None = None

    async def ask(self, headers: Headers) -> Refusal | None:
        """None when there is an answer to read. ``headers`` are the agent's. Raises EngineError."""
        body: bytes | None = await asyncio.to_thread(self._codec.write, self._request)
        refusal = None
        for _ in range(_CONCESSIONS + 1):
            if body is None:
                break
            await self.close()
            refusal = await self._ask(headers, body)
            if refusal is None or refusal.status != _ERROR:
                break
            body = conceded(body, refusal.message)
        return refusal

    async def _ask(self, headers: Headers, body: bytes) -> Refusal | None:
        sent = upstream_headers(headers, self._dialect)
        self._response = response = await self._engine.relay(RelayRequest("POST", PATHS[self._dialect], sent, body))
        if response.status < _ERROR:
            return None
        said = b""
        async for chunk in response.chunks():
            said = (said + chunk)[:_SAID_MOST]
        return Refusal(response.status, error_message(_plain(response, said)), _kept(response.headers))

    async def events(self) -> AsyncGenerator[EngineEvent, None]:
        """Of the answer. Raises EngineError when it breaks off or tells of a failure."""
        assert self._response is not None, "ask first"
        own = {tool_name(tool.name): tool.name for tool in self._request.tools}
        reader = self._codec.reader(self._receipt)
        streamed = "text/event-stream" in header(self._response.headers, b"content-type").lower()
        async for event in (_streamed if streamed else _whole)(self._response, reader):
            yield replace(event, name=own.get(event.name, event.name)) if isinstance(event, ToolStart) else event

    async def close(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await asyncio.shield(response.close())


async def _whole(response: RelayResponse, reader: Reader) -> AsyncGenerator[EngineEvent, None]:
    body, size = list[bytes](), 0
    async for chunk in response.chunks():
        body.append(chunk)
        size += len(chunk)
        if size > RECORDED:
            raise _endless(RECORDED)
    for event in [*reader.whole(_object(_plain(response, b"".join(body)))), *reader.end()]:
        yield event


async def _streamed(response: RelayResponse, reader: Reader) -> AsyncGenerator[EngineEvent, None]:
    stream = EventReader()
    try:
        undo = Undoing(header(response.headers, b"content-encoding") or "identity")
        async for chunk in response.chunks():
            for event in _read(reader, stream.feed(undo.feed(chunk))):
                yield event
            if stream.unfinished > LAST_LIMIT:
                raise _endless(LAST_LIMIT)
    except Undecodable as error:
        raise _unreadable(error) from None
    for event in [*_read(reader, stream.finish()), *reader.end()]:
        yield event


def upstream_headers(headers: Headers, target: Dialect) -> Headers:
    """A client's headers for a provider of another vendor: who asks, with which key, in that vendor's fields."""
    sent: Headers = [(b"content-type", b"application/json"), (b"accept-encoding", b"identity")]
    sent += [(name, value) for name, value in headers if name.lower() in _KEPT_UP]
    given = {name.lower(): value for name, value in headers}
    bearer = given.get(b"authorization", b"")
    key = given.get(b"x-api-key") or (bearer[len(_BEARER) :] if bearer.lower().startswith(_BEARER) else b"")
    if target is Dialect.MESSAGES:
        sent.append(_VERSION)
        if key and not key.startswith(_SUBSCRIPTION):
            return [*sent, (b"x-api-key", key)]
    return [*sent, (b"authorization", b"Bearer " + key)] if key else sent


def _read(reader: Reader, told: Iterable[tuple[str, str]]) -> Iterator[EngineEvent]:
    for name, data in told:
        if data != "[DONE]":
            yield from reader.event(name, _object(data.encode()))


def _object(data: bytes) -> dict[str, object]:
    try:
        value = jsontext.decode(data)
    except jsontext.NotJson:
        value = None
    if not isinstance(value, dict):
        raise EngineError(f"the provider sent what is no JSON object: {data[:80].decode('utf-8', 'replace')!r}")
    return value


def _plain(response: RelayResponse, body: bytes) -> bytes:
    try:
        return decoded(body, header(response.headers, b"content-encoding"))
    except Undecodable as error:
        raise _unreadable(error) from None


def _unreadable(error: Undecodable) -> EngineError:
    return EngineError(f"the provider's answer cannot be read: {error}", hint="reef doctor")


def _endless(limit: int) -> EngineError:
    return EngineError(f"the provider sent over {limit >> 20} MiB that can only be read as one", hint="reef doctor")


def _kept(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name.decode("latin-1").lower().startswith(_KEPT_DOWN)]
