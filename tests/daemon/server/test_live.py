"""Calls in flight: what is known of them, and what is kept of what they say."""

import asyncio
import gc
import json
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from daemon.core.records import Dialect
from daemon.core.redact import Redactor
from daemon.server import live as module
from daemon.server.exchange import Call
from daemon.server.identity import identify
from daemon.server.live import Live
from daemon.server.outgoing import Outgoing
from daemon.wire.live import Piece
from tests.daemon.server.test_outgoing import SSE, Client

REDACTOR = Redactor(b"k" * 32)


def call(dialect: Dialect = Dialect.CHAT) -> Call:
    headers = [(b"user-agent", b"pi/1.6.0")]
    path = "/v1/chat/completions"
    scope = {"path": path, "raw_path": path.encode(), "query_string": b"", "method": "POST", "headers": headers}
    one = Call(dialect, scope, REDACTOR)
    one.identity = identify(one.headers)
    return one


def said(text: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode()


async def begun() -> tuple[Live, Call, Outgoing]:
    live, one = Live(REDACTOR, lambda: None), call()
    outgoing = Outgoing(one, Client())
    live.begin(one, outgoing)
    await outgoing.begin(200, list(SSE))
    return live, one, outgoing


async def test_a_late_reader_begins_with_the_first_word() -> None:
    live, one, outgoing = await begun()
    await outgoing.feed(said("Hello "))
    (flight,) = live.since(0)
    await flight.read()
    await outgoing.feed(said("you"))
    live.end(one)
    await flight.read()
    assert (flight.pieces, flight.chars, flight.cut) == ([Piece("text", "Hello "), Piece("text", "you")], 9, False)
    assert live.since(0) == []


async def test_who_listens_is_woken_and_nobody_else_costs_anything() -> None:
    live, one, outgoing = await begun()
    (flight,) = live.since(0)
    assert outgoing.watched is None
    with flight.heard() as first, flight.heard() as second:
        await outgoing.feed(said("Hello "))
        assert first.is_set()
        assert second.is_set()
        first.clear()
        live.end(one)
        assert first.is_set()
    assert outgoing.watched is None


async def test_no_more_is_kept_than_a_bound_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 10)
    live, _, outgoing = await begun()
    await outgoing.feed(said("12345 789 and more "))
    (flight,) = live.since(0)
    await flight.read()
    await outgoing.feed(said("never seen "))
    await flight.read()
    assert (flight.pieces, flight.chars, flight.cut) == ([Piece("text", "12345 789 ")], 10, True)


async def test_an_answer_that_was_taken_back_is_read_anew() -> None:
    """An engine broke off before its first word, and the next one answers."""
    live, _, outgoing = await begun()
    await outgoing.feed(b": nothing yet\n\n")
    (flight,) = live.since(0)
    await flight.read()
    outgoing.take_back()
    await outgoing.begin(200, list(SSE))
    await outgoing.feed(said("Hello "))
    await flight.read()
    assert flight.pieces == [Piece("text", "Hello ")]


async def test_an_answer_in_one_piece_says_nothing_before_it_is_there() -> None:
    live, one = Live(REDACTOR, lambda: None), call()
    outgoing = Outgoing(one, Client())
    live.begin(one, outgoing)
    await outgoing.begin(200, [(b"content-type", b"application/json")])
    await outgoing.feed(b'{"choices":[{"message":{"content":"Hello "}}]}')
    (flight,) = live.since(0)
    await flight.read()
    assert (flight.pieces, flight.cut) == ([], False)


async def test_who_asks_while_its_session_is_looked_up_waits_for_it() -> None:
    live, _, _ = await begun()
    (flight,) = live.since(0)
    found = threading.Event()
    store: Any = SimpleNamespace(expected=lambda *_: found.wait(10) and "ses_1")
    both = [asyncio.create_task(flight.told(store)) for _ in range(2)]
    await asyncio.sleep(0)
    found.set()
    assert [told["session"] for told in await asyncio.gather(*both)] == ["ses_1", "ses_1"]


def test_what_is_not_recorded_and_what_is_no_conversation_is_not_shown() -> None:
    rung: list[int] = []
    live = Live(REDACTOR, lambda: rung.append(1))
    denied, other = call(), call(Dialect.OTHER)
    denied.unrecorded = "denied"
    for one in (denied, other):
        live.begin(one, Outgoing(one, Client()))
        live.end(one)
    assert (live.since(0), live.begun, rung) == ([], 0, [])


async def test_a_call_that_ended_goes_with_its_bodies() -> None:
    live, one, outgoing = await begun()
    (flight,) = live.since(0)
    with flight.heard():
        await outgoing.feed(said("Hello "))
        await flight.read()
    live.end(one)
    gone = weakref.ref(one)
    gc.disable()
    try:
        del one, outgoing, flight
        assert gone() is None
    finally:
        gc.enable()
