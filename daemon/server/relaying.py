"""A provider's answer on its way to the client: its bytes, its end, its refusal.

What passes is not changed. Only where an answer has no end of its own does one of ours take that place, in the form of
its dialect.
"""

from contextlib import suppress
from typing import Final

from daemon.core.errors import EngineError, EngineUnavailable, ReefError, TooLarge, TooSlow, UpstreamUnreachable
from daemon.core.records import Dialect, End
from daemon.engines.base import Headers, RelayResponse
from daemon.server.exchange import Call
from daemon.server.outgoing import JSON, Outgoing, header
from daemon.server.translation import Refusal
from daemon.wire.encoding import Undecodable, decoded
from daemon.wire.errors import error_message, provider_error
from daemon.wire.sse import events

#: Seconds until an engine that loads is asked again. Claude Code gives up at once where it is told of over a minute.
_SOON: Final = b"5"
_HINT: Final = "reef doctor"
_OK: Final = 200
_BROKEN: Final = 502
_OVERLOADED: Final = 503
#: Of an error that comes too late for its status.
_SAID_MOST: Final = 64 << 10
#: Clients of these take a stream that just stops for one that goes on.
_WAITING: Final = frozenset((Dialect.MESSAGES, Dialect.RESPONSES))


async def pass_on(call: Call, outgoing: Outgoing, response: RelayResponse) -> None:
    """Send a provider's answer as it comes, and find out how it ended."""
    if response.status >= 400:
        call.end, call.error = End.ERROR, f"the provider answered {response.status}"
    if outgoing.started and not _streams(response):
        await _tell_late(call, outgoing, response)
        return
    await outgoing.begin(response.status, response.headers)
    try:
        async for chunk in response.chunks():
            await outgoing.feed(chunk)
    except EngineError as error:
        call.broken = not _cut(call, outgoing, error)
        if call.broken:
            await outgoing.flush()
        return
    if call.end is End.OK:
        await _judge(call, outgoing)


async def _judge(call: Call, outgoing: Outgoing) -> None:
    """What an answer that came to its end says of itself."""
    complete, failed = await outgoing.verdict()
    if failed:
        call.end, call.error = End.ERROR, f"the provider sent an error inside its {call.status}"
        if call.dialect is Dialect.RESPONSES and call.stream:
            _fail(call, outgoing)
    elif not complete and call.dialect is not Dialect.OTHER:  # of which only its provider knows how it ends
        _cut(call, outgoing, UpstreamUnreachable("the provider's stream ended without its last event", hint=_HINT))


def _cut(call: Call, outgoing: Outgoing, error: EngineError) -> bool:
    """An answer without an end; whether its client is told so. Raises ``error`` for a stream that said nothing yet:
    agents ask again after a 502, and not after a 200 that is empty.
    """
    if call.stream and not outgoing.started:
        outgoing.take_back()
        raise error
    call.end, call.error = End.INCOMPLETE, error.message
    return _told(call, outgoing, error)


def refuse(call: Call, outgoing: Outgoing, refusal: Refusal) -> None:
    """A provider's error in the words of another dialect."""
    call.end, call.error = End.ERROR, f"the provider answered {refusal.status}: {refusal.message}"
    kind, message = provider_error(refusal.message)
    if outgoing.started:
        outgoing.hold(call.failure(refusal.status, kind, message))
    else:
        error = call.codec.error(refusal.status, kind, message)
        outgoing.replace(refusal.status, [*JSON, *refusal.headers], error)


def _fail(call: Call, outgoing: Outgoing) -> None:
    """Say in Responses' own way that an answer failed: Codex reads `response.failed`, and passes over other errors."""
    sent = outgoing.captured()
    if b"response.failed" in sent:
        return
    data = [data for _, data in events(sent[-_SAID_MOST:])][-1:]
    said = data[0] if data else ""
    message = error_message(said.encode())
    status = _OVERLOADED if "overload" in said else _BROKEN
    outgoing.end_after(call.codec.error_event(status, "upstream_error", message, after=sent))


def _told(call: Call, outgoing: Outgoing, error: EngineError) -> bool:
    """End a stream that was cut short with the dialect's own error, where clients wait for one. The others see the
    connection break, as they would without Reef.
    """
    if breaks(call.dialect):
        return False
    event = call.codec.error_event(error.status, error.kind, worded(error), after=outgoing.captured())
    return outgoing.end_with(event)


def breaks(dialect: Dialect) -> bool:
    """Whether an answer without an end is left without one, so that its client sees that."""
    return dialect not in _WAITING


def _streams(response: RelayResponse) -> bool:
    kind = header(response.headers, b"content-type")
    return response.status == _OK and kind.lower().startswith("text/event-stream")


async def _tell_late(call: Call, outgoing: Outgoing, response: RelayResponse) -> None:
    """An answer that is no stream comes after keep-alives went out: its words end the stream, as an error."""
    said = b""
    async for chunk in response.chunks():
        said = (said + chunk)[:_SAID_MOST]
    with suppress(Undecodable):
        said = decoded(said, header(response.headers, b"content-encoding"))
    call.end = End.ERROR
    call.error = call.error or "the provider answered with no stream"
    message = f"{call.error}: {error_message(said)}"
    outgoing.hold(call.codec.error_event(response.status, "upstream_error", message))


def head_of(error: ReefError) -> Headers:
    """The headers of an error of our own."""
    headers = [*JSON]
    if isinstance(error, EngineUnavailable):
        headers.append((b"retry-after", _SOON))
    if isinstance(error, TooLarge | TooSlow):
        headers.append((b"connection", b"close"))
    return headers


def worded(error: ReefError) -> str:
    """An error as an agent shows it: what happened, and the next step."""
    return f"{error.message} ({error.hint})" if error.hint else error.message
