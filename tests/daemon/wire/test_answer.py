"""A response is read by what it is, and what cannot be read is a problem, never an exception."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.answer import Answer, assemble


class Seen:
    """An assembler that keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    def whole(self, body: dict[str, Any]) -> None:
        self.bodies.append(body)

    def event(self, name: str, data: dict[str, Any]) -> None:
        self.events.append((name, data))

    def adds(self, data: dict[str, Any], text: str) -> bool:
        return False

    def answer(self) -> Answer:
        return Answer()


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_as_json_is_read_as_a_body_whatever_was_asked(stream: bool) -> None:
    seen = Seen()
    assemble(seen, b' {"error": 1}', stream)
    assert seen.bodies == [{"error": 1}]


@pytest.mark.parametrize("stream", [True, False])
def test_events_are_read_as_events_whatever_was_asked(stream: bool) -> None:
    seen = Seen()
    assemble(seen, b'event: a\ndata: {"b": 1}\n\ndata: [DONE]\n\n', stream)
    assert seen.events == [("a", {"b": 1})]


def test_broken_json_is_a_problem() -> None:
    assert assemble(Seen(), b'{"a": ', False).problem == "the response is broken JSON"
    assert assemble(Seen(), b'data: {"a": \n\n', True).problem == "an event of the response is not JSON"


@given(st.binary(max_size=80), st.booleans())
def test_nothing_raises(body: bytes, stream: bool) -> None:
    assemble(Seen(), body, stream)
