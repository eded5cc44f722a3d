"""What is no conversation is kept as it is, and nothing of it makes the recording raise."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import NotSupported
from daemon.core.records import Transcript, Usage
from daemon.wire.other import Other


def recorded(request: bytes, response: bytes = b"", **more: str) -> Transcript:
    return Other().transcript(request, response, stream=False, redact=lambda raw: (raw, 0), **more)


def test_both_bodies_are_kept_and_tokens_counted() -> None:
    answer = json.dumps({"model": "e-1", "data": [], "usage": {"prompt_tokens": 5, "total_tokens": 5}}).encode()
    found = recorded(b'{"model": "e", "input": "x"}', answer)
    assert (found.head, found.response, found.messages) == (b'{"model": "e", "input": "x"}', answer, ())
    assert (found.usage, found.model) == (Usage(prompt=5), "e-1")


def test_what_is_no_text_is_not_kept_since_nothing_in_it_could_be_redacted() -> None:
    found = recorded(b"\xff\xfbaudio", b"{}")
    assert found.head == b""
    assert "the request is not kept" in str(found.note)


@pytest.mark.parametrize(
    ("body", "model"), [(b'{"model":"m"}', "m"), (b'{"model":3}', "default"), (b"", "default"), (b"\xff", "default")]
)
def test_the_model_is_read_where_there_is_one(body: bytes, model: str) -> None:
    assert Other().peek(body).model == model


def test_an_engine_of_ours_has_no_answer() -> None:
    with pytest.raises(NotSupported, match="engine inside"):
        Other().parse(b"{}")


@given(st.binary(max_size=80), st.binary(max_size=80), st.sampled_from(["", "gzip", "br"]))
def test_nothing_raises(request: bytes, response: bytes, encoding: str) -> None:
    recorded(request, response, request_encoding=encoding, response_encoding=encoding)
    Other().peek(request)
    Other().message(request)
