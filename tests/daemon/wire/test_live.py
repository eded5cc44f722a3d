"""What an answer says while it streams, in each dialect, wherever its bytes are cut."""

import gzip
import json
from typing import Any

import pytest

from daemon.core.records import Dialect
from daemon.core.redact import Redactor
from daemon.wire.base import dialect
from daemon.wire.live import LiveText
from tests.fakes import shapes
from tests.fakes.provider import Shape
from tests.fakes.responses_shape import Responses

REDACT = Redactor(b"k" * 32).redact
SHAPES: dict[Dialect, type[Shape]] = {
    Dialect.CHAT: shapes.Chat,
    Dialect.MESSAGES: shapes.Messages,
    Dialect.RESPONSES: Responses,
}
TOOL = {"name": "bash", "description": "", "parameters": {}, "input_schema": {}}
ASKED: dict[str, Any] = {"model": "m", "stream": True, "tools": [{"type": "function", **TOOL, "function": TOOL}]}
SAID = [
    ("thinking", "Let me see."),
    ("text", "I run two commands."),
    ("tool", 'bash {"command": "ls"}\nbash {"command": "wc -c x"}'),
]


def streamed(name: Dialect, text: str, thinking: str = "", calls: tuple[tuple[str, str], ...] = ()) -> bytes:
    return b"".join(SHAPES[name](ASKED, 100).events(text, list(calls), thinking))


def live(name: Dialect, encoding: str = "") -> LiveText:
    return LiveText(dialect(name).reader("rec_1"), REDACT, encoding)


def told(text: LiveText, data: bytes, size: int) -> list[tuple[str, str]]:
    """All of it, pieces of a kind in a row as one."""
    pieces = [piece for at in range(0, len(data), size) for piece in text.feed(data[at : at + size])]
    found: list[tuple[str, str]] = []
    for piece in [*pieces, *text.finish()]:
        before = found.pop() if found and found[-1][0] == piece.kind else (piece.kind, "")
        found.append((piece.kind, before[1] + piece.text))
    return found


@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
@pytest.mark.parametrize("name", [Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES])
def test_words_thoughts_and_calls_are_told_in_order(name: Dialect, size: int) -> None:
    calls = (("bash", '{"command": "ls"}'), ("bash", '{"command": "wc -c x"}'))
    assert told(live(name), streamed(name, SAID[1][1], SAID[0][1], calls), size) == SAID


@pytest.mark.parametrize("name", [Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES])
def test_a_secret_is_never_shown_not_even_half_of_it(name: Dialect) -> None:
    secret = "sk-proj-abcdefghij0123456789klmnop"
    text = live(name)
    data = streamed(name, f"the key is {secret} and so on")
    ((_, shown),) = told(text, data, 11)
    assert shown.startswith("the key is [redacted:openai:")
    assert secret[:12] not in shown


def test_a_compressed_stream_is_read_as_it_comes() -> None:
    text, packed = live(Dialect.CHAT, "gzip"), gzip.compress(streamed(Dialect.CHAT, "Hello you."))
    assert told(text, packed, 20) == [("text", "Hello you.")]


@pytest.mark.parametrize(("encoding", "data"), [("br", b"x"), ("gzip", b"this is no gzip"), ("gzip, zstd", b"x")])
def test_what_cannot_be_decoded_says_nothing(encoding: str, data: bytes) -> None:
    text = live(Dialect.CHAT, encoding)
    assert told(text, data, 100) == []
    assert text.over


def test_an_error_inside_the_stream_ends_the_words() -> None:
    events = [{"choices": [{"index": 0, "delta": {"content": "Hello you"}}]}, {"error": {"message": "overloaded"}}]
    text = live(Dialect.CHAT)
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    assert told(text, data, 1000) == [("text", "Hello ")]
    assert text.over


def test_events_that_are_no_json_are_passed_over() -> None:
    text = live(Dialect.CHAT)
    assert told(text, b"data: {broken\n\ndata: [1]\n\n" + streamed(Dialect.CHAT, "Hello."), 1000) == [
        ("text", "Hello.")
    ]


def test_what_never_comes_to_its_end_is_given_up() -> None:
    text = live(Dialect.CHAT)
    endless = {"choices": [{"index": 0, "delta": {"content": "x" * (1 << 19)}}]}
    for _ in range(3):
        assert text.feed(f"data: {json.dumps(endless)}\n\n".encode()) == []
    assert text.over
    assert text.finish() == []
