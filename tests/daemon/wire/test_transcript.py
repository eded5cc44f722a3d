"""What is kept of an exchange: exact, without secrets, and never at the price of an exception."""

import base64
import gzip
import json
import random
import re
import threading
import time
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.records import Dialect, Transcript
from daemon.core.redact import Redactor
from daemon.wire.base import Redact, dialect

COVERS = ("daemon/wire/chat.py", "daemon/wire/messages.py")
CHAT, MESSAGES = Dialect.CHAT, Dialect.MESSAGES
LISTS = {CHAT: "messages", MESSAGES: "messages", Dialect.RESPONSES: "input"}
SECRET = "sk-canary0123456789"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{}, {}]}).encode()


def redact(raw: bytes) -> tuple[bytes, int]:
    """What a redactor does, for one kind of secret."""
    return re.subn(rb"sk-canary\d{10}", b"[secret:1]", raw)


def recorded(name: Dialect, request: bytes = BODY, response: bytes = b"", **more: Any) -> Transcript:
    return dialect(name).transcript(request, response, **{"stream": True, "redact": redact, **more})


def sse(*texts: str) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def joined(found: Transcript) -> bytes:
    return found.head + found.separator.join(message.raw for message in found.messages) + found.tail


def test_the_request_joins_back_and_the_response_is_kept() -> None:
    found = recorded(CHAT, BODY, sse("Hel", "lo"))
    assert joined(found) == BODY
    assert found.response == sse("Hel", "lo")
    assert found.answer is not None
    assert (found.answer.role, found.answer.text) == ("assistant", "Hello")
    assert (found.tools, found.redacted, found.note) == (2, 0, None)


def test_how_a_system_prompt_beside_the_messages_begins_is_told() -> None:
    blocks = [{"type": "text", "text": "x-anthropic-billing-header: v1"}, {"type": "text", "text": f"I am {SECRET}"}]
    said = [{"role": "user", "content": "hi"}]
    assert recorded(MESSAGES, json.dumps({"system": blocks, "messages": said}).encode()).system == "I am [secret:1]"
    assert recorded(Dialect.RESPONSES, json.dumps({"instructions": "I am", "input": said}).encode()).system == "I am"
    assert recorded(CHAT).system == ""


@pytest.mark.parametrize("name", LISTS)
def test_the_newest_message_is_the_last_that_is_no_systems(name: Dialect) -> None:
    said = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    system = {"role": "system", "content": [{"type": "text", "text": "rules"}]}
    for messages in (said, [*said, system], [*said, system, system]):
        found = dialect(name).newest(json.dumps({LISTS[name]: messages, "tools": [{}]}).encode())
        assert found is not None
        assert (found.role, found.text) == ("user", "two")
    assert dialect(name).newest(json.dumps({LISTS[name]: [system]}).encode()) is None
    assert dialect(name).newest(b"reef-good") is None
    assert dialect(Dialect.OTHER).newest(BODY) is None


def test_a_secret_in_a_message_never_reaches_the_record() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": f"key {SECRET}"}, {"role": "user"}]}).encode()
    found = recorded(CHAT, body)
    assert joined(found) == body.replace(SECRET.encode(), b"[secret:1]")
    assert found.messages[0].text == "key [secret:1]"
    assert found.redacted == 1


def test_a_secret_around_the_messages_is_taken_out_too() -> None:
    body = json.dumps({"system": f"use {SECRET}", "messages": [{}], "metadata": {"k": SECRET}}).encode()
    found = recorded(MESSAGES, body)
    assert SECRET.encode() not in joined(found)
    assert found.redacted == 2


def test_the_same_secret_leaves_the_same_key_and_root() -> None:
    body = json.dumps({"system": SECRET, "messages": [{"role": "user", "content": SECRET}]}).encode()
    one, other = recorded(MESSAGES, body), recorded(MESSAGES, body.replace(SECRET.encode(), b"[secret:1]"))
    assert one.messages[0].key == other.messages[0].key
    assert one.root == other.root


def test_a_whole_secret_in_a_stream_is_taken_out_of_its_bytes() -> None:
    found = recorded(CHAT, BODY, sse("it is ", SECRET))
    assert found.response == sse("it is ", "[secret:1]")
    assert found.answer is not None
    assert found.answer.text == "it is [secret:1]"
    assert found.redacted == 1


def test_a_secret_spread_over_events_takes_the_streams_bytes_with_it() -> None:
    found = recorded(CHAT, BODY, sse("it is sk-can", "ary0123", "456789"))
    assert found.response == b""
    assert found.answer is not None
    assert found.answer.text == "it is [secret:1]"
    assert found.redacted == 1
    assert "spread over its events" in str(found.note)


def test_one_whole_and_one_spread_secret_is_still_a_spread_one() -> None:
    found = recorded(CHAT, BODY, sse(SECRET, " and sk-can", "ary0123456789"))
    assert found.response == b""
    assert found.answer is not None
    assert SECRET not in found.answer.text


def test_a_secret_spread_over_a_tool_calls_arguments_is_found() -> None:
    events = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "b", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"c":"sk-cana'},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": 'ry0123456789"}'},
        },
    ]
    found = recorded(MESSAGES, BODY, b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))
    assert found.response == b""
    assert found.answer is not None
    assert b"canary" not in found.answer.raw


ENV = (
    "DATABASE_URL=postgres://app:s3cr3t-pässword@db.local/x\nTWILIO_AUTH_TOKEN=9f86d081884c7d659a2feaa0c55ad015\n"
    "AZURE=DefaultEndpointsProtocol=https;AccountKey=3l1x/Zq9+abcDEF0123456789ghiJKL+mnoPQR/stuVWX==;\nHOME=/home/me\n"
)
LEAKS = ("s3cr3t", "9f86d081884c7d659a2feaa0c55ad015", "3l1x/Zq9", "stuVWX")
OUTPUTS: dict[Dialect, list[dict[str, Any]]] = {
    CHAT: [{"role": "tool", "tool_call_id": "c", "content": ENV}],
    MESSAGES: [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": ENV}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": f"a {ENV}"}]}]},
    ],
    Dialect.RESPONSES: [
        {"type": "function_call_output", "call_id": "c", "output": ENV},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": f"a {ENV}"}]},
        {"type": "local_shell_call_output", "id": "c", "output": json.dumps({"output": ENV, "metadata": {}})},
        {"type": "custom_tool_call_output", "call_id": "c", "output": json.dumps({"output": ENV})},
    ],
}  # fmt: skip


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize(("name", "number"), [(name, n) for name, given in OUTPUTS.items() for n in range(len(given))])
def test_what_cat_env_printed_is_in_nothing_that_is_kept(name: Dialect, number: int, *, ascii: bool) -> None:
    """BUGS B166: Keys were live in transcripts after a month (claude-code#86707): bytes, search and training read what
    is here.
    """
    body = json.dumps({LISTS[name]: [OUTPUTS[name][number]]}, ensure_ascii=ascii).encode()
    found = recorded(name, body, redact=Redactor(b"k").redact)
    assert found.redacted == 3
    (message,) = found.messages
    shown = dialect(name).message(message.raw)
    for told in (joined(found).decode(), message.text, repr(shown)):
        assert [leak for leak in LEAKS if leak in told] == []
    json.loads(joined(found))
    assert "HOME=/home/me" in message.text


def test_a_signature_that_only_looks_like_a_secret_stays_whole() -> None:
    """BUGS B167."""
    signature = base64.b64encode(random.Random(5).randbytes(300))
    blocks = b'{"type":"thinking","thinking":"","signature":"%s"}, {"data": "%s","type":"redacted_thinking"}'
    said = b'{"role":"assistant","content":[' + blocks % (signature, signature[:88]) + b"]}"
    found = recorded(MESSAGES, b'{"messages":[' + said + b"]}", said, stream=False, redact=Redactor(b"k").redact)
    assert joined(found) == b'{"messages":[' + said + b"]}"
    assert (found.response, found.redacted) == (said, 0)


ODD = {"server_tool_use": None, "cache_creation": {"ephemeral_1h_input_tokens": None, "x": [{"y": 1}]}, "z": [None]}
DETAILS = {"cached_tokens": None, "audio_tokens": {"deep": [1]}, "w": None}
#: A whole answer with text, a call and a usage, whose counts are 5 and 2.
ANSWERS: dict[Dialect, dict[str, Any]] = {
    CHAT: {
        "choices": [{"message": {"role": "assistant", "content": "Hello", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"c":"ls"}'}}]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": DETAILS,
            "completion_tokens_details": None, **ODD},
    },
    MESSAGES: {
        "role": "assistant", "content": [
            {"type": "text", "text": "Hello"}, {"type": "tool_use", "id": "c", "name": "bash", "input": {"c": "ls"}}],
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": None, "service_tier": None, **ODD},
    },
    Dialect.RESPONSES: {
        "object": "response", "status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
            {"type": "function_call", "call_id": "c", "name": "bash", "arguments": '{"c":"ls"}'}],
        "usage": {"input_tokens": 5, "output_tokens": 2, "input_tokens_details": DETAILS,
            "output_tokens_details": None, **ODD},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_nulls_and_unknown_fields_in_a_usage_cost_neither_the_counts_nor_the_answer(name: Dialect) -> None:
    """B151, langfuse#6882: the whole output was lost."""
    found = recorded(name, b"", json.dumps(ANSWERS[name]).encode(), stream=False)
    assert found.answer is not None
    assert [type(part).__name__ for part in dialect(name).message(found.answer.raw).parts] == ["Text", "ToolUse"]
    assert (found.usage.prompt, found.usage.completion, found.note) == (5, 2, None)


@pytest.mark.parametrize(
    ("encoding", "squeeze"), [("gzip", gzip.compress), ("zstd", zstandard.compress), ("", bytes), ("identity", bytes)]
)
def test_compressed_bodies_are_recorded_as_what_they_hold(encoding: str, squeeze: Any) -> None:
    found = recorded(CHAT, squeeze(BODY), squeeze(sse("hi")), request_encoding=encoding, response_encoding=encoding)
    assert joined(found) == BODY
    assert found.response == sse("hi")
    assert found.answer is not None


def test_a_compressed_stream_that_broke_off_is_read_as_far_as_it_goes() -> None:
    squeezed = gzip.compress(sse(*(f"word{i} " for i in range(3000))))
    found = recorded(CHAT, BODY, squeezed[: len(squeezed) // 2], response_encoding="gzip")
    assert found.answer is not None
    assert found.answer.text.startswith("word0 word1 ")


def test_what_cannot_be_decoded_is_not_kept_since_it_cannot_be_redacted() -> None:
    found = recorded(CHAT, b"\x0b\x02", b"\x0b\x02", request_encoding="br", response_encoding="br")
    assert (joined(found), found.response, found.answer) == (b"", b"", None)
    assert "the request is not kept: the encoding 'br'" in str(found.note)


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"messages":[{"a":1},{"b":2} ,{"c":3}]}', b"\xff\x00"])
def test_a_request_that_does_not_split_is_kept_whole(body: bytes) -> None:
    found = recorded(CHAT, body)
    assert (found.head, found.messages, found.tail) == (body, (), b"")
    assert found.note == "the request could not be split into messages"


def test_a_secret_in_a_request_that_does_not_split_is_taken_out() -> None:
    assert recorded(CHAT, f"key={SECRET}".encode()).head == b"key=[secret:1]"


@pytest.mark.parametrize("message", [3, None, [], {}, {"role": "wizard"}, {"role": "user", "content": 3}, {"role": 3}])
@pytest.mark.parametrize("name", list(LISTS))
def test_a_message_that_cannot_be_read_is_kept_and_noted(name: Dialect, message: Any) -> None:
    body = json.dumps({LISTS[name]: [message]}).encode()
    found = recorded(name, body)
    assert joined(found) == body
    assert "a message could not be read" in str(found.note)
    assert found.messages[0].text == json.dumps(message)


def test_half_an_emoji_in_a_message_is_no_trouble() -> None:
    body = rb'{"messages":[{"role":"user","content":"cut \ud83d"}]}'
    found = recorded(CHAT, body)
    assert joined(found) == body
    assert (found.messages[0].text, found.note) == ("cut \ufffd", None)


@given(st.binary(max_size=200), st.binary(max_size=200), st.booleans(), st.sampled_from(list(LISTS)))
def test_no_bytes_at_all_make_it_raise(request: bytes, response: bytes, stream: bool, name: Dialect) -> None:
    found = dialect(name).transcript(request, response, stream=stream, redact=lambda raw: (raw, 0))
    assert joined(found) == request
    assert found.response == response


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "role",
                    "content",
                    "text",
                    "tool_calls",
                    "function",
                    "index",
                    "delta",
                    "choices",
                    "usage",
                    "message",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3), st.lists(JSON, max_size=4), st.sampled_from(list(LISTS)))
def test_no_json_at_all_makes_it_raise(messages: list[Any], chunks: list[Any], name: Dialect) -> None:
    request = json.dumps({LISTS[name]: messages, "system": chunks, "tools": messages}).encode()
    response = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    codec = dialect(name)
    assert joined(codec.transcript(request, response, stream=True, redact=lambda raw: (raw, 0))) == request
    for message in messages:
        codec.message(json.dumps(message).encode())


class Counting:
    """A redactor that counts the bytes it was given."""

    def __init__(self) -> None:
        self.seen = 0

    def redact(self, raw: bytes) -> tuple[bytes, int]:
        self.seen += len(raw)
        return raw, 0


@pytest.mark.parametrize("name", LISTS)
def test_a_growing_conversation_is_read_only_where_it_is_new(name: Dialect) -> None:
    """B231, https://github.com/nesquena/hermes-webui/issues/7081: all of it was redacted again at the end of each turn.

    Once a message, when it comes; what a turn costs does not depend on what was said before.
    """
    counting = Counting()
    take: Redact = counting.redact
    messages = [{"role": "user", "content": f"{i} " + "x" * 2000} for i in range(50)]
    tools = [{"name": "t", "description": "y" * 20_000}]
    codec = dialect(name)
    for turn in range(1, 50):
        body = json.dumps({LISTS[name]: messages[:turn], "tools": tools}).encode()
        before = counting.seen
        codec.transcript(body, b"", stream=False, redact=take)
        assert turn == 1 or counting.seen - before < 2100


def test_another_redactor_reads_everything_anew() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": SECRET}]}).encode()
    assert SECRET in recorded(CHAT, body, redact=lambda raw: (raw, 0)).messages[0].text
    assert SECRET not in recorded(CHAT, body).messages[0].text


def test_threads_do_not_get_in_each_others_way() -> None:
    bodies = [json.dumps({"messages": [{"role": "user", "content": str(i % 7)}] * 3}).encode() for i in range(200)]
    wrong: list[bytes] = []

    def work() -> None:
        wrong.extend(body for body in bodies if joined(recorded(CHAT, body)) != body)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong


def test_a_long_conversation_is_recorded_in_a_few_milliseconds() -> None:
    messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "x" * 850} for i in range(400)]
    codec = dialect(CHAT)
    best = 9.0
    for turn in range(380, 400, 2):
        body = json.dumps({"model": "m", "messages": messages[:turn]}).encode()
        start = time.perf_counter()
        codec.transcript(body, sse("hi"), stream=True, redact=redact)
        best = min(best, time.perf_counter() - start)
    assert best < 0.02  # measured 1 ms; the margin is for a busy machine
