"""A provider's answer passes as it is; where it has no end, each dialect's clients get the one that they understand."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from starlette.types import Message

from daemon.core.errors import UpstreamUnreachable
from daemon.core.records import Dialect, End
from daemon.core.redact import Redactor
from daemon.engines.base import Headers
from daemon.server.exchange import Call
from daemon.server.outgoing import Outgoing
from daemon.server.relaying import pass_on

CHAT, MESSAGES, RESPONSES, OTHER = Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES, Dialect.OTHER


@dataclass
class Answer:
    """`daemon.engines.base.RelayResponse`, from memory."""

    said: list[bytes]
    breaks: bool = False
    status: int = 200
    headers: Headers = field(default_factory=lambda: [(b"content-type", b"text/event-stream")])

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self.said:
            yield chunk
        if self.breaks:
            raise UpstreamUnreachable("far broke off its answer", hint="reef doctor")

    async def close(self) -> None:
        pass


async def passed(dialect: Dialect, answer: Answer) -> tuple[Call, bytes]:
    """The call afterwards, and what the client got."""
    call = Call(
        dialect,
        {"path": "/v1/x", "raw_path": b"/v1/x", "query_string": b"", "method": "POST", "headers": []},
        Redactor(b"key"),
    )
    sent: list[bytes] = []

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    outgoing = Outgoing(call, send)
    await pass_on(call, outgoing, answer)
    if not call.broken:
        await outgoing.finish()
    return call, b"".join(sent)


BEGUN = b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'


@pytest.mark.parametrize("breaks", [True, False])
@pytest.mark.parametrize(("dialect", "last"), [(MESSAGES, b"event: error"), (RESPONSES, b"event: response.failed")])
async def test_who_waits_for_an_end_is_told(dialect: Dialect, last: bytes, breaks: bool) -> None:
    """What is left of an event that stayed unfinished is not sent: nobody could read it."""
    call, got = await passed(dialect, Answer([BEGUN, b'data: {"half'], breaks=breaks))
    assert (call.end, call.broken) == (End.INCOMPLETE, False)
    assert got.startswith(BEGUN + last)
    assert b'{"half' not in got


CREATED = b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n'


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b'event: error\ndata: {"type":"error","error":{"message":"it is overloaded"}}\n\n', "server_is_overloaded"),
        (b'data: {"error":{"message":"it is broken"}}\n\n', "server_error"),
    ],
)
async def test_an_error_that_codex_would_pass_over_is_followed_by_one_that_it_reads(said: bytes, code: str) -> None:
    """BUGS B031."""
    call, got = await passed(RESPONSES, Answer([CREATED, said]))
    assert call.end is End.ERROR
    assert got.startswith(CREATED + said + b"event: response.failed\ndata: ")
    response = json.loads(got.rpartition(b"data: ")[2])["response"]
    assert (response["id"], response["error"]["code"]) == ("resp_1", code)
    assert "it is " in response["error"]["message"]


ERRORS = (
    b'data: {"error":{"message":"no"}}\n\n',
    b'data: {"object":"error","message":"no"}\n\n',
    b'data: {"detail":"no"}\n\n',
    b'data: {"type":"error","error":{"message":"no"}}\n\n',
)
SAID = {CHAT: b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n', MESSAGES: BEGUN, RESPONSES: CREATED}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("dialect", [CHAT, MESSAGES, RESPONSES])
async def test_an_error_in_any_shape_passes_and_is_one(dialect: Dialect, begun: bool, error: bytes) -> None:
    """BUGS B029."""
    said = [SAID[dialect], error] if begun else [error]
    call, got = await passed(dialect, Answer(said))
    assert call.end is End.ERROR
    assert got.startswith(b"".join(said))
    assert call.transcript(b"".join(said))().note == "the provider reported: no"


async def test_a_failure_that_it_reads_already_stays_the_last_event() -> None:
    failed = b'event: response.failed\ndata: {"type":"response.failed","response":{"id":"resp_1"}}\n\n'
    call, got = await passed(RESPONSES, Answer([CREATED, failed]))
    assert (call.end, got) == (End.ERROR, CREATED + failed)


@pytest.mark.parametrize("dialect", [CHAT, OTHER])
async def test_others_see_the_connection_break_after_every_byte(dialect: Dialect) -> None:
    call, got = await passed(dialect, Answer([b'data: {"a":1}\n\n', b'data: {"half'], breaks=True))
    assert (call.end, call.broken) == (End.INCOMPLETE, True)
    assert got == b'data: {"a":1}\n\ndata: {"half'


async def test_a_reason_to_stop_is_no_end_where_the_connection_breaks_after_it() -> None:
    """https://github.com/anthropics/claude-code/issues/19143: what had to come of a call may be what is missing."""
    cut = b'{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\\"a\\": \\"/ho"}}]}'
    said = b'data: {"choices":[{"delta":' + cut + b',"finish_reason":"stop"}]}\n\n'
    call, got = await passed(CHAT, Answer([said], breaks=True))
    assert (call.end, call.broken, got) == (End.INCOMPLETE, True, said)
    assert call.transcript(got)().note == "the arguments of a call are no whole JSON object"


async def test_a_stream_of_a_kind_nobody_knows_ends_as_its_provider_ends_it() -> None:
    said = [b'data: {"progress":0.5}\n\n', b'data: {"progress":1.0}\n\n']
    call, got = await passed(OTHER, Answer(said))
    assert (call.end, got) == (End.OK, b"".join(said))


async def test_an_unfinished_event_that_is_out_already_cannot_be_taken_back() -> None:
    long = b'data: {"a":"' + b"x" * 100_000
    call, got = await passed(MESSAGES, Answer([BEGUN, long], breaks=True))
    assert (call.broken, got) == (True, BEGUN + long)


async def test_a_body_that_breaks_off_breaks_here_too() -> None:
    json = [(b"content-type", b"application/json"), (b"content-length", b"100")]
    call, got = await passed(MESSAGES, Answer([b'{"id":', b'"msg'], breaks=True, headers=json))
    assert (call.end, call.broken, got) == (End.INCOMPLETE, True, b'{"id":"msg')
