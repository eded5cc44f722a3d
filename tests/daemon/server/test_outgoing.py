"""What goes out when: streams at once but for their end, everything else when it is whole."""

import asyncio
import gzip
from typing import Any

import pytest

from daemon.core.records import Dialect
from daemon.core.redact import Redactor
from daemon.engines.base import Headers
from daemon.server import outgoing as module
from daemon.server.exchange import Call
from daemon.server.identity import identify
from daemon.server.outgoing import Outgoing
from daemon.wire.sse import LIMIT

SSE = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json")]


class Client:
    """An ASGI ``send`` that keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    async def __call__(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def ended(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.sent[0]["headers"] if key == name), None)


def call() -> Call:
    scope = {
        "path": "/v1/chat/completions",
        "raw_path": b"/v1/chat/completions",
        "query_string": b"",
        "method": "POST",
        "headers": [(b"user-agent", b"pi/1.6.0")],
    }
    made = Call(Dialect.CHAT, scope, Redactor(b"key"))
    made.identity = identify(made.headers)
    return made


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.parametrize(
    "word",
    [b'data: {"a":1}\n\n', b"event: message_start\ndata: {}\n\n", b'data: {"type":"pong"}\n\n', b"data: {} x\n\n"],
)
async def test_a_streams_head_goes_out_with_its_first_word(client: Client, word: bytes) -> None:
    """What only says that it is alive waits for that: the answer can still become an error of its own."""
    quiet = b': PROCESSING\n\nevent: ping\ndata: {"type": "ping"}\n\nid: 1\r\nretry: 5\r\n\r\ndata: {}\n\n'
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    for byte in quiet:
        await outgoing.feed(bytes([byte]))
    assert client.sent == []
    await outgoing.feed(word)
    assert client.sent[0]["status"] == 200
    assert client.body == quiet + word == outgoing.captured()
    assert client.header(b"x-reef-agent-record-id")
    assert client.header(b"x-reef-release-id") == b"base"


async def test_a_stream_that_says_nothing_does_not_wait_for_ever(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    comment = b": " + b"x" * 1000 + b"\n\n"
    while not client.sent:
        assert len(outgoing.captured()) < 2 * LIMIT
        await outgoing.feed(comment)
    assert client.body == outgoing.captured()


async def test_a_streams_length_is_not_told_since_its_end_must_wait(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, [*SSE, (b"Content-Length", b"9")])
    await outgoing.feed(b"data: x\n\n")
    assert client.header(b"Content-Length") is None


async def test_a_streams_events_pass_at_once_and_its_end_waits(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    await outgoing.feed(b'data: {"a":1}\n\n')
    assert client.body == b'data: {"a":1}\n\n'
    await outgoing.feed(b"data: [DONE]\n\n")
    assert client.body == b'data: {"a":1}\n\n'
    assert await outgoing.verdict() == (True, False)
    await outgoing.finish()
    assert client.body == b'data: {"a":1}\n\ndata: [DONE]\n\n' == outgoing.captured()
    assert client.ended


async def test_a_body_waits_whole_and_gets_its_length(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, [*JSON])
    await outgoing.feed(b'{"a":1}')
    assert client.sent == []
    await outgoing.finish()
    assert client.body == b'{"a":1}'
    assert client.header(b"content-length") == b"7"


async def test_a_long_body_passes_but_for_its_last_chunk(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, [*JSON, (b"content-length", b"6")])
    for chunk in (b"ab", b"cd", b"ef"):
        await outgoing.feed(chunk)
    assert client.body == b"abcd"
    await outgoing.finish()
    assert client.body == b"abcdef"
    assert client.ended


async def test_a_stream_that_stays_quiet_is_begun_with_a_keep_alive(client: Client) -> None:
    """With the provider's own headers, and what it said until then before ours."""
    outgoing = Outgoing(call(), client)
    outgoing.keep_alive(0.01)
    await outgoing.begin(200, [*SSE, (b"x-theirs", b"1")])
    await outgoing.feed(b": hm\n\n")
    await asyncio.sleep(0.1)
    assert client.header(b"x-theirs") == b"1"
    assert client.body.startswith(b": hm\n\ndata: {")
    assert client.body.count(b": hm") == 1
    await outgoing.finish()
    assert outgoing.captured() == b": hm\n\n"


async def test_a_stream_that_said_nothing_becomes_an_error(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    await outgoing.feed(b": hm\n\n")
    outgoing.replace(502, [*JSON], b"{}")
    await outgoing.finish()
    assert (client.sent[0]["status"], client.body) == (502, b"{}")


async def test_an_error_replaces_what_was_not_sent(client: Client) -> None:
    one = call()
    outgoing = Outgoing(one, client)
    await outgoing.begin(200, [*JSON])
    await outgoing.feed(b"half an ans")
    outgoing.replace(502, [*JSON], b'{"error":{}}')
    await outgoing.finish()
    assert (client.sent[0]["status"], client.body, outgoing.captured()) == (502, b'{"error":{}}', b'{"error":{}}')
    assert one.status == 502


async def test_an_error_in_a_stream_comes_after_what_was_sent(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    await outgoing.feed(b"data: 1\n\n")
    outgoing.hold(b'data: {"error":{"message":"x"}}\n\n')
    await outgoing.finish()
    assert client.body == b'data: 1\n\ndata: {"error":{"message":"x"}}\n\n'


async def test_what_broke_off_is_flushed_without_an_end(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    await outgoing.feed(b"data: 1\n\ndata: tw")
    await outgoing.flush()
    assert client.body == b"data: 1\n\ndata: tw"
    assert not client.ended
    assert await outgoing.verdict() == (False, False)


async def test_an_error_event_is_seen(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, SSE)
    await outgoing.feed(b'data: {"error": {"message": "overloaded"}}\n\n')
    assert await outgoing.verdict() == (False, True)


FAILED = b'{"object": "error", "message": "too long", "code": 400}'
ERROR_EVENT = b"data: " + FAILED + b"\n\n"
ENDED = b'data: {"choices":[{"finish_reason":"stop"}]}\n\n'


@pytest.mark.parametrize(
    ("kind", "body", "zipped", "verdict"),
    [
        (JSON, b'{"id": "x", "choices": [], "error": null}', False, (True, False)),
        (JSON, FAILED, False, (True, True)),
        (JSON, FAILED, True, (True, True)),
        (JSON, b"", False, (True, False)),
        (SSE, ENDED + b"data: [DONE]\n\n", True, (True, False)),
        (SSE, b'data: {"choices":[]}\n\n', True, (False, False)),
        (SSE, ERROR_EVENT, True, (False, True)),
    ],
)
async def test_a_whole_body_is_judged_as_a_stream_is(
    client: Client, kind: Headers, body: bytes, zipped: bool, verdict: tuple[bool, bool]
) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, [*kind, (b"content-encoding", b"gzip")] if zipped else [*kind])
    await outgoing.feed(gzip.compress(body) if zipped else body)
    assert await outgoing.verdict() == verdict


async def test_what_cannot_be_decoded_is_taken_at_its_status(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, [*SSE, (b"content-encoding", b"br")])
    await outgoing.feed(b"\x0b\x02")
    assert await outgoing.verdict() == (True, False)


async def test_a_response_without_end_is_passed_on_and_kept_up_to_a_bound(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECORDED", 8)
    made = call()
    outgoing = Outgoing(made, client)
    await outgoing.begin(200, JSON)
    for _ in range(3):
        await outgoing.feed(b"12345")
    await outgoing.finish()
    assert client.body == b"12345" * 3
    assert outgoing.captured() == b"12345123"
    assert "of the response are kept" in (made.transcript(outgoing.captured())().note or "")


async def test_nothing_of_ours_goes_into_a_compressed_stream(client: Client) -> None:
    outgoing = Outgoing(call(), client)
    await outgoing.begin(200, [*SSE, (b"content-encoding", b"gzip")])
    outgoing.keep_alive(0.01)
    for half in (compressed := gzip.compress(b"data: {}\n\n"))[:9], compressed[9:]:
        await outgoing.feed(half)
        await asyncio.sleep(0.05)
    await outgoing.finish()
    assert client.body == compressed
