"""Routing reads two fields and nothing else."""

import json

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import Dialect
from daemon.wire.base import Peek, dialect
from daemon.wire.peek import peek


def test_model_and_stream_are_found_wherever_they_stand() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 100_000}], "stream": True, "model": "m"}).encode()
    assert peek(body) == Peek("m", True)


@pytest.mark.parametrize("body", [b"{}", b'{"model":null,"stream":null}', b'{"model":""}'])
def test_without_a_model_the_default_is_asked_for(body: bytes) -> None:
    assert peek(body) == Peek("default", False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"model":3}', "model: expected a string, got 3"),
        (b'{"model":"m","stream":"yes"}', 'stream: expected true or false, got "yes"'),
        (b"[1]", "the body is not a JSON object"),
        (b"", "the body is not a JSON object"),
        (b'{"model":', "the body is not a JSON object"),
        (b'{"x":' + b"[" * 100_000, "the body is not a JSON object"),
    ],
)
def test_what_cannot_be_routed_says_why(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        peek(body)
    assert caught.value.message.startswith(message)


def test_half_an_emoji_elsewhere_does_not_stop_routing() -> None:
    assert peek(rb'{"messages":["\ud83d"],"model":"m"}').model == "m"


def test_dialects_of_conversations_peek_alike() -> None:
    for name in set(Dialect) - {Dialect.OTHER}:
        assert dialect(name).peek(b'{"model":"m","stream":true}') == Peek("m", True)


def test_a_dialect_has_one_codec_a_process() -> None:
    assert dialect(Dialect.CHAT) is dialect(Dialect.CHAT)
