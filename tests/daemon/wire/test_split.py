"""A body is cut into messages, and joins back to the byte."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.split import Split, Splitter, count, split

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True, scope="module")
def starts_of_short_bodies_are_known_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daemon.wire.split._SHORT", 0)
        yield


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


# -- bodies that begin like earlier ones ------------------------------------------------------------


def body_of(messages: list[object], **after: object) -> bytes:
    return json.dumps({"model": "m", "system": "s", "messages": messages, **after}).encode()


@given(
    st.lists(st.lists(st.sampled_from([{"a": 1}, {"b": "x"}, 1, 12, "s", [2], {}]), max_size=5), max_size=8),
    st.sampled_from([{}, {"tools": [1, 2]}, {"system": "other"}, {"messages": [7]}, {"copy": [{"a": 1}]}]),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)
def test_a_splitter_cuts_like_one_that_knows_nothing(
    conversations: list[list[object]], after: dict[str, object], marks: tuple[str, str]
) -> None:
    splitter = Splitter()
    for messages in conversations:
        before = json.dumps({"model": "m", "messages": messages}, separators=marks)
        # A field may come twice in what follows.
        body = (before[:-1] + marks[0] + json.dumps(after, separators=marks)[1:] if after else before).encode()
        assert splitter.split(body) == split(body)


def test_messages_that_were_known_are_the_same_objects() -> None:
    messages: list[object] = [{"role": "user", "content": str(n)} for n in range(20)]
    splitter = Splitter()
    one = splitter.split(body_of(messages[:10], tools=[1]))
    other = splitter.split(body_of(messages, tools=[1]))
    assert one is not None
    assert other is not None
    assert all(mine is theirs for mine, theirs in zip(one.raws, other.raws, strict=False))
    assert (other.system, count(other.tools)) == (b'"s"', 1)


def test_a_cache_mark_that_moves_costs_only_the_last_messages() -> None:
    plain: list[object] = [{"role": "user", "content": str(n)} for n in range(12)]

    def marked(count: int) -> bytes:
        return body_of([*plain[: count - 1], {"role": "user", "content": str(count - 1), "cache_control": {}}])

    splitter = Splitter()
    one, other = splitter.split(marked(8)), splitter.split(marked(12))
    assert one is not None
    assert other is not None
    assert other == split(marked(12))
    assert sum(mine is theirs for mine, theirs in zip(one.raws, other.raws, strict=False)) == 5


def test_what_is_known_stays_bounded() -> None:
    splitter = Splitter()
    for n in range(70):
        assert splitter.split(body_of([n, "x" * 400_000, n]))
    known = list(splitter._starts.values())
    assert len(known) <= 32
    assert sum(len(start.body) for start in known) <= 12 * 1024 * 1024


@pytest.mark.parametrize("place", [10, 65_000, 100_000, 140_000])
def test_what_differs_far_from_its_end_is_another_start(place: int) -> None:
    """Of the same length and with the same last bytes."""
    text = "x" * 150_000
    splitter = Splitter()
    for said in (text, text[:place] + "y" + text[place + 1 :], text):
        body = body_of([said, "the same end " * 10, "and", "more", "after", "it"])
        assert splitter.split(body) == split(body)
