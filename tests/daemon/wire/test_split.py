"""A body is cut into messages, and joins back to the byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.split import Split, count, split

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def joined(cut: Split) -> bytes:
    return cut.head + cut.separator.join(cut.raws) + cut.tail


def test_messages_come_out_as_they_were_written() -> None:
    body = b'{"model":"m", "messages": [ {"role" : "user"} ,  {"b":2} ,  {"c":3} ], "stream":true}'
    cut = split(body)
    assert cut is not None
    assert cut.raws == (b'{"role" : "user"}', b'{"b":2}', b'{"c":3}')
    assert cut.separator == b" ,  "
    assert joined(cut) == body


@given(
    st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=3), min_size=1, max_size=6),
    JSON,
    st.sampled_from([(",", ":"), (", ", ": "), (",\n  ", ":  ")]),
    st.booleans(),
)
def test_any_body_joins_back(messages: list[object], other: object, marks: tuple[str, str], ascii_only: bool) -> None:
    value = {"before": other, "messages": messages, "tools": [other]}
    body = json.dumps(value, separators=marks, ensure_ascii=ascii_only).encode("utf-8", "replace")
    cut = split(body)
    assert cut is not None
    assert joined(cut) == body
    assert len(cut.raws) == len(messages)


@given(st.binary(max_size=60))
def test_any_bytes_are_split_losslessly_or_not_at_all(body: bytes) -> None:
    cut = split(body)
    assert cut is None or joined(cut) == body


def test_pretty_printed_bodies_are_split() -> None:
    body = json.dumps({"messages": [{"a": 1}, {"b": 2}, {"c": 3}]}, indent=2).encode()
    cut = split(body)
    assert cut is not None
    assert len(cut.raws) == 3
    assert joined(cut) == body


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[{"a":1},{"b":2}, {"c":3}]}',  # separators differ
        b'{"messages":[]}',
        b'{"messages":null}',
        b'{"messages":"text"}',
        b'{"model":"m"}',
        b"[]",
        b"",
        b'{"messages":[{"a":1}',
        b'\xef\xbb\xbf{"messages":[{"a":1}]}',
    ],
)
def test_what_does_not_split_cleanly_is_not_split(body: bytes) -> None:
    assert split(body) is None


def test_the_same_list_elsewhere_is_not_taken_for_the_messages() -> None:
    body = b'{"copy":[{"a":1}],"messages":[{"a":1}],"again":[{"a":1}]}'
    cut = split(body)
    assert cut is not None
    assert cut.head == b'{"copy":[{"a":1}],"messages":['
    assert cut.tail == b'],"again":[{"a":1}]}'


def test_the_same_list_inside_a_text_is_not_taken_either() -> None:
    body = b'{"note":"[1]","messages":[1]}'
    cut = split(body)
    assert cut is not None
    assert cut.head == b'{"note":"[1]","messages":['


def test_of_a_field_given_twice_the_last_counts() -> None:
    body = b'{"messages":[{"a":1}],"messages":[{"b":2}]}'
    cut = split(body)
    assert cut is not None
    assert cut.raws == (b'{"b":2}',)


def test_half_an_emoji_does_not_change_the_bytes() -> None:
    body = rb'{"messages":[{"content":"\ud83d"},{"content":"\ud83d\ude00"}]}'
    cut = split(body)
    assert cut is not None
    assert cut.raws == (rb'{"content":"\ud83d"}', rb'{"content":"\ud83d\ude00"}')
    assert joined(cut) == body


def test_system_and_tools_are_handed_out_as_sent() -> None:
    cut = split(b'{"system":[{"type":"text"}],"messages":[{}],"tools":[{"name":"a"},{"name":"b"}]}')
    assert cut is not None
    assert cut.system == b'[{"type":"text"}]'
    assert count(cut.tools) == 2


@pytest.mark.parametrize("array", [b"", b"null", b"{}", b"[", b'"x"'])
def test_what_is_no_list_counts_as_nothing(array: bytes) -> None:
    assert count(array) == 0
