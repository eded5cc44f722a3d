"""JSON as it really comes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire import jsontext


def test_half_an_emoji_is_read_as_a_replacement_character() -> None:
    assert jsontext.decode(rb'{"a":"cut \ud83d here"}') == {"a": "cut \ufffd here"}


def test_a_whole_escaped_pair_stays_an_emoji() -> None:
    assert jsontext.decode(rb'{"a":"\ud83d\ude00 \ud83d"}') == {"a": "\U0001f600 \ufffd"}


def test_an_escaped_backslash_before_ud83d_is_text() -> None:
    assert jsontext.masked(rb'"\\ud83d"') == rb'"\\ud83d"'


@given(st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\\", r"\n", "x", r"\u00e9", "é"])))
def test_masking_keeps_the_length_and_leaves_nothing_that_cannot_be_written(pieces: list[str]) -> None:
    text = '"' + "".join(pieces) + '"'
    masked = jsontext.masked(text.encode())
    assert len(masked) == len(text.encode())
    jsontext.encode(jsontext.decode(masked))


def test_masked_and_whole_json_agree_where_nothing_is_wrong() -> None:
    data = json.dumps({"a": ["\U0001f600", "\\ud83d", 1.5, None]}).encode()
    assert jsontext.masked(data) == data


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b"\xff", b'{"a":NaN}', b"[" * 100_000, b'{"a":"\xff"}'])
def test_what_is_not_json_is_said_to_be_not_json(body: bytes) -> None:
    with pytest.raises(jsontext.NotJson):
        jsontext.decode(body)


def test_lone_surrogates_in_a_string_are_made_writable() -> None:
    assert jsontext.encodable("a\ud83d") == "a\ufffd"
    assert jsontext.encodable("plain \U0001f600") == "plain \U0001f600"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ('{}{"location":"x"}', {"location": "x"}),
        ('{"a":1} {"a":2}', {"a": 2}),
        ('{"text":"two\nlines"}', {"text": "two\nlines"}),
        (r'{"a":"\ud83d"}', {"a": "\ufffd"}),
    ],
)
def test_arguments_are_read_as_models_and_servers_write_them(written: str, value: object) -> None:
    assert jsontext.arguments(written) == value


@pytest.mark.parametrize("written", ['{"a":', r'{"a":"\d"}', "[1]", "3", "null", "rm -rf x", '{"a":1}{"b":'])
def test_arguments_that_are_no_object_are_none(written: str) -> None:
    assert jsontext.arguments(written) is None
