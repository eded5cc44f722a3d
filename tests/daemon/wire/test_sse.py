"""A stream passes unchanged, whatever its chunks; its end waits."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.sse import _LAST, LIMIT, EventReader, Relay, _last, events, looks_like_events, says_nothing, whole

CHAT = (
    b'data: {"choices":[{"delta":{"role":"assistant"},"finish_reason":null}]}\n\n'
    + 'data: {"choices":[{"delta":{"content":"阴气渐重 😀"},"finish_reason":null}]}\n\n'.encode()
    + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    + b'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n'
)
DONE = b"data: [DONE]\n\n"
MESSAGES = (
    b'event: message_start\ndata: {"type":"message_start"}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta"}\n\n'
)
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'

#: Pieces that streams are made of, whole and broken, so that any order of them is tried.
PIECES = st.lists(
    st.sampled_from(
        [
            b"data: x\n\n",
            b"data:{}\r\n\r\n",
            b": ping\n\n",
            b"event: message_stop\ndata: {}\n\n",
            b"data: [DONE]\n\n",
            b"event: error\ndata: {}\n\n",
            b'data: {"finish_reason": "stop"}\n\n',
            b"\n",
            b"\r",
            b"\r\n",
            b"id: 1\n",
            b"retry: 5\r",
            b"data: ",
            b"\xef\xbb\xbf",
            b"{}",
            b"y" * 3000,
            b"z" * (LIMIT + 5),
        ]
    ),
    max_size=12,
)


def chunks_of(body: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    return [body[a:b] for a, b in pairwise(places)]


@given(PIECES, st.lists(st.integers(0, 2**20), max_size=30))
def test_any_stream_in_any_chunks_comes_out_the_same(pieces: list[bytes], cuts: list[int]) -> None:
    body = b"".join(pieces)
    relay = Relay()
    sent = b"".join(relay.feed(chunk) for chunk in chunks_of(body, cuts))
    assert body.startswith(sent)
    assert sent + relay.release() == body


@given(st.lists(st.integers(0, 2**20), max_size=40), st.sampled_from([(CHAT, DONE), (MESSAGES, STOP)]))
def test_the_terminal_event_is_kept_back_however_it_arrives(cuts: list[int], stream: tuple[bytes, bytes]) -> None:
    before, last = stream
    relay = Relay()
    sent = b"".join(relay.feed(chunk) for chunk in chunks_of(before + last, cuts))
    assert sent == before
    assert relay.complete
    assert relay.release() == last


@given(st.lists(st.integers(0, 2**20), max_size=40))
def test_line_ends_of_any_kind_are_cut_alike(cuts: list[int]) -> None:
    for end in (b"\r\n", b"\r", b"\n"):
        body = (MESSAGES + STOP).replace(b"\n", end)
        relay = Relay()
        sent = b"".join(relay.feed(chunk) for chunk in chunks_of(body, cuts))
        assert b"message_stop" not in sent
        assert relay.complete
        assert sent + relay.release() == body


def test_each_whole_event_passes_at_once() -> None:
    relay = Relay()
    for event in CHAT.split(b"\n\n")[:-1]:
        assert relay.feed(event + b"\n\n") == event + b"\n\n"


def test_a_part_of_an_event_waits_for_the_rest() -> None:
    relay = Relay()
    assert relay.feed(b"data: one\n\ndata: tw") == b"data: one\n\n"
    assert relay.feed(b"o\n\n") == b"data: two\n\n"


def test_what_follows_the_terminal_event_stays_behind_it() -> None:
    relay = Relay()
    assert relay.feed(DONE + b": bye\n\n") == b""
    assert relay.feed(b"data: more\n\n") == b""
    assert relay.release() == DONE + b": bye\n\ndata: more\n\n"


def test_a_stream_that_ends_without_a_blank_line_is_complete() -> None:
    relay = Relay()
    relay.feed(CHAT)
    assert relay.feed(b"data: [DONE]") == b""
    assert relay.complete
    assert relay.release() == b"data: [DONE]"


def test_a_stream_without_its_end_is_not_complete() -> None:
    relay = Relay()
    relay.feed(MESSAGES)
    assert not relay.complete


def test_a_chat_stream_that_named_its_finish_is_complete_without_done() -> None:
    relay = Relay()
    relay.feed(CHAT)
    assert relay.complete


def test_text_that_talks_of_finish_reasons_is_no_finish() -> None:
    relay = Relay()
    relay.feed(
        b'data: {"choices":[{"delta":{"content":"{\\"finish_reason\\": \\"stop\\"}"},"finish_reason":null}]}\n\n'
    )
    assert not relay.complete


def test_text_that_talks_of_done_is_no_end() -> None:
    relay = Relay()
    event = b'data: {"content":"say\\ndata: [DONE]"}\n\n'
    assert relay.feed(event) == event
    assert not relay.complete


@pytest.mark.parametrize(
    "event",
    [
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
        b'data: {"error":{"message":"boom"}}\n\n',
        b'data: {"error": "boom"}\n\n',
        b'data: {"object":"error","message":"too long"}\n\n',
        b'data: {"detail":"too long"}\n\n',
        b'data: {"detail": [{"msg": "too long"}]}\n\n',
        b'data:{ "type": "error" }\n\n',
    ],
)
def test_an_error_inside_a_stream_is_an_end_that_failed(event: bytes) -> None:
    relay = Relay()
    assert relay.feed(CHAT + event) == CHAT
    assert relay.failed
    assert not relay.complete
    assert relay.release() == event


@pytest.mark.parametrize("after", [b"", DONE])
def test_a_chunk_that_stops_for_an_error_is_an_end_that_failed(after: bytes) -> None:
    """How gateways tell that the provider behind them broke off, between other fields."""
    chunk = b'data: {"id":"g","error":{"message":"x"},"choices":[{"delta":{},"finish_reason":"error"}]}\n\n'
    relay = Relay()
    relay.feed(chunk + after)
    assert relay.failed
    assert not relay.complete
    body = b'{"id":"g","choices":[{"message":{"content":"half"},"finish_reason": "error"}]}'
    assert whole(body, stream=False).failed
    assert not whole(body.replace(b"error", b"stop"), stream=False).failed


@pytest.mark.parametrize(("status", "failed"), [("failed", True), ("completed", False), ("incomplete", False)])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_responses_answer_that_failed_is_no_success(status: str, failed: bool, indent: int | None) -> None:
    error = {"code": "server_error", "message": "broke"} if failed else None
    body = {"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": error, "output": []}
    assert whole(json.dumps(body, indent=indent).encode(), stream=False).failed is failed


def test_a_call_that_failed_inside_an_answer_is_no_failure_of_it() -> None:
    output = [{"type": "web_search_call", "status": "failed"}]
    body = {"id": "r", "object": "response", "status": "completed", "error": None, "output": output}
    assert not whole(json.dumps(body).encode(), stream=False).failed


def test_a_null_error_in_every_chunk_is_no_error() -> None:
    relay = Relay()
    event = b'data: {"error":null,"choices":[]}\n\n'
    assert relay.feed(event) == event
    assert not relay.failed


def test_comments_alone_are_neither_held_nor_an_end() -> None:
    relay = Relay()
    assert relay.feed(b": OPENROUTER PROCESSING\n\n") == b": OPENROUTER PROCESSING\n\n"
    assert relay.feed(b"event: ping\ndata: {}\n\n") == b"event: ping\ndata: {}\n\n"
    assert not relay.complete


def test_a_comment_and_an_event_in_one_read_both_pass() -> None:
    """BUGS B006."""
    both = b": ping\n\ndata: {}\n\n"
    assert Relay().feed(both) == both


@pytest.mark.parametrize("body", [b'{"error":1}', b"<html>", b"\x1f\x8b\x08\x00", b"datum", b"\xef\xbb\xbf{"])
def test_what_is_no_stream_passes_at_once(body: bytes) -> None:
    relay = Relay()
    assert relay.feed(body) == body
    assert relay.feed(b"data: [DONE]\n\n") == b"data: [DONE]\n\n"
    assert relay.complete


def test_the_first_bytes_wait_only_until_they_tell() -> None:
    relay = Relay()
    assert relay.feed(b"da") == b""
    assert relay.feed(b"ze") == b"daze"


def test_an_event_over_the_limit_passes_as_it_comes() -> None:
    relay = Relay()
    start = b"data: " + b"x" * LIMIT
    assert relay.feed(start) == start
    assert relay.feed(b"yyy") == b""  # a line may be starting
    assert relay.feed(b"\n\ndata: [DONE]\n\n") == b"yyy\n\n"
    assert relay.release() == DONE


def test_the_inside_of_a_long_line_is_not_taken_for_an_end() -> None:
    relay = Relay()
    relay.feed(b"data: " + b"x" * LIMIT)
    relay.feed(b"data: [DONE]")
    assert not relay.complete


@pytest.mark.parametrize(
    ("said", "nothing"),
    [
        (b"", True),
        (b": x\r\n\r\n", True),
        (b'event: ping\ndata: {"type": "ping", "n": 1}\n\n', True),
        (b"event:ping\ndata:{}\n\n", True),
        (b"event: pong\ndata: {}\n\n", False),
        (b'event: ping\ndata: {"choices": []}\n\n', False),
        (b": x\n\ndata: [DONE]\n\n", False),
        # In a time that grows with their length, in whatever ways they could be read.
        (b"\r\n" * 10_000 + b"data: [DONE]\n\n", False),
        (b": PROCESSING\r\n\r\n" * 10_000 + b"data: [DONE]\n\n", False),
        (b": PROCESSING\r\n\r\n" * 10_000, True),
    ],
)
def test_what_only_keeps_a_connection_alive_says_nothing(said: bytes, nothing: bool) -> None:
    assert says_nothing(said) is nothing


def test_events_are_read_with_all_line_ends_comments_and_several_data_lines() -> None:
    body = b": note\r\nevent: a\r\ndata: one\r\ndata:two\r\n\r\ndata: three\r\rid: 4\nretry: 1\n\nevent: b\ndata\n\n"
    assert list(events(body)) == [("a", "one\ntwo"), ("", "three"), ("b", "")]


def test_a_last_event_that_was_broken_off_is_read_too() -> None:
    assert list(events(b"data: 1\n\ndata: 2")) == [("", "1"), ("", "2")]


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    assert list(events(b"\xef\xbb\xbfdata: 1\n\n")) == [("", "1")]


def test_bytes_that_are_no_utf8_are_replaced_not_refused() -> None:
    assert list(events(b"data: a\xffb\n\n")) == [("", "a\ufffdb")]


@pytest.mark.parametrize(
    ("body", "yes"),
    [(CHAT, True), (b": x\n", True), (b"\n\ndata: 1", True), (b"{}", False), (b"", False), (b"da", False)],
)
def test_a_body_is_known_as_a_stream_by_its_start(body: bytes, yes: bool) -> None:
    assert looks_like_events(body) is yes


@given(st.lists(st.integers(0, len(CHAT + DONE)), max_size=8))
def test_events_read_as_they_come_are_those_of_the_whole(cuts: list[int]) -> None:
    raw, reader = CHAT + DONE, EventReader()
    edges = [0, *sorted(cuts), len(raw)]
    told = [event for a, b in pairwise(edges) for event in reader.feed(raw[a:b])]
    assert [*told, *reader.finish()] == list(events(raw))


def test_the_last_event_of_a_responses_stream_is_held_however_large() -> None:
    """It repeats the whole answer, and instructions and tools: far over what any other event has."""
    last = b"event: response.completed\ndata: " + json.dumps({"output": ["x" * (3 * LIMIT)]}).encode() + b"\n\n"
    relay = Relay()
    assert relay.feed(b"event: response.created\ndata: {}\n\n") != b""
    assert b"".join(relay.feed(last[i : i + 5000]) for i in range(0, len(last), 5000)) == b""
    assert relay.complete
    assert relay.release() == last


WORDS = (
    b'data: event: { } x [DONE] message_stop error "type": "message_stop" "response.completed" '
    b'"response.failed" response.incomplete "error" "error":{ "detail":" "object":'
)


@given(st.lists(st.sampled_from([b"\n", b"\r", b" ", *WORDS.split()]), max_size=30))
def test_an_end_is_found_wherever_its_words_stand(pieces: list[bytes]) -> None:
    """Looking from the first word's line on finds what looking at all of it finds."""
    seen = b"".join(pieces)
    expected, found = _LAST.search(seen), _last(seen)
    assert (found and (found.span(), found["end"])) == (expected and (expected.span(), expected["end"]))
