"""A run of events that differ in one string is read as one event, and what is assembled from it is the same."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.alike import joined
from daemon.wire.answer import Assembler, assemble
from daemon.wire.chat_answer import ChatAssembler
from daemon.wire.messages_answer import MessagesAssembler
from daemon.wire.sse import events

#: Quotes, escapes, halves of an emoji, and what looks like the events themselves.
TEXTS = st.text(alphabet='ab \\"{}\n\t/é🐟\ud83d\udc1f', max_size=6) | st.sampled_from(
    ['"},"', "\n\n", '{"a": 1}', "}"]
)


class Chat(ChatAssembler):
    def adds(self, data: dict[str, Any], text: str) -> bool:
        return False


class Messages(MessagesAssembler):
    def adds(self, data: dict[str, Any], text: str) -> bool:
        return False


def chat(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return chat({"tool_calls": [{"index": 0, "function": {"arguments": arguments}, **more}]})


def block(kind: str, field: str, text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}


CHAT = [
    lambda text: chat({"content": text}),
    lambda text: chat({"role": "assistant", "content": text, "refusal": None}),
    lambda text: chat({"content": None, "reasoning_content": text}),
    lambda text: chat({"content": "twice", "reasoning": text}),
    lambda text: chat({"refusal": text}),
    lambda text: chat({"content": "x"}, error={"message": text}),
    lambda text: chat({"content": text}, object="error"),
    lambda text: chat({"content": "x"}, obfuscation=text),
    lambda text: chat({"content": text}, model=text),
    lambda text: {"choices": [{"message": {"content": "x"}, "delta": {"content": text}}]},
    lambda text: {"choices": [{"delta": {"content": text}}] * 2},
    lambda text: {"detail": text},
    call,
    lambda text: call(text, id="call_1"),
    lambda text: {"choices": [{"delta": {"tool_calls": [{"id": "b", "function": {"name": "f", "arguments": text}}]}}]},
    lambda text: chat({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}], "content": text}),
]
MESSAGES = [
    lambda text: block("text_delta", "text", text),
    lambda text: block("text_delta", "text", text, index=1),
    lambda text: block("thinking_delta", "thinking", text),
    lambda text: block("signature_delta", "signature", text),
    lambda text: block("input_json_delta", "partial_json", text, index=2),
    lambda text: block("text_delta", "thinking", text),
    lambda text: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}},
    lambda text: {"type": "error", "error": {"message": text}},
]
KINDS: dict[type[ChatAssembler | MessagesAssembler], tuple[type[Assembler], list[Any]]] = {
    ChatAssembler: (Chat, CHAT),
    MessagesAssembler: (Messages, MESSAGES),
}


@st.composite
def streams(draw: st.DrawFn, shapes: list[Any]) -> bytes:
    """Several runs, each of events of one kind; some cut in two inside, some with other bytes in between."""
    told = b""
    for _ in range(draw(st.integers(1, 4))):
        shape, ascii = draw(st.sampled_from(shapes)), draw(st.booleans())
        name = draw(st.sampled_from(["", "event: content_block_delta\n", "event: error\n"]))
        for text in draw(st.lists(TEXTS, min_size=1, max_size=6)):
            data = json.dumps(shape(text), ensure_ascii=ascii).encode("utf-8", "surrogatepass")
            told += name.encode() + b"data: " + data + b"\n\n"
        told += draw(st.sampled_from([b"", b": ping\n\n", b"data: {\n\n", b"\n", b"data: [DONE]\n\n", b'data: "a\n']))
    cut = draw(st.integers(0, len(told)))
    return draw(st.sampled_from([told, told[:cut], told[cut:], told[:cut] + b"\xff" + told[cut:]]))


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_what_is_assembled_is_the_same(kind: type[ChatAssembler | MessagesAssembler], data: st.DataObject) -> None:
    apart, shapes = KINDS[kind]
    body = data.draw(streams(shapes))
    assert assemble(kind(), body, True) == assemble(apart(), body, True)


def body_of(shape: Any, texts: list[str]) -> bytes:
    return b"".join(b"data: " + json.dumps(shape(text)).encode() + b"\n\n" for text in texts)


@pytest.mark.parametrize(
    ("assembler", "shape"),
    [(ChatAssembler(), shape) for shape in (*CHAT[:3], CHAT[4], call)]
    + [(MessagesAssembler(), shape) for shape in MESSAGES[:5]],
)
def test_a_run_is_one_event(assembler: Assembler, shape: Any) -> None:
    texts = ["Hello ", "", '"you"', " \n\\ é", "🐟"]
    (_, data) = next(events(joined(body_of(shape, texts), assembler.adds)))
    assert json.loads(data) == shape("".join(texts))


@pytest.mark.parametrize("shape", [*CHAT[3:4], *CHAT[5:12], *CHAT[13:]])
def test_events_that_do_not_add_up_stay_apart(shape: Any) -> None:
    body = body_of(shape, ["a", "b", "c"])
    assert joined(body, ChatAssembler().adds) == body


def test_halves_of_a_character_are_not_put_together() -> None:
    """Neither escaped nor as bytes: read one by one each is a replacement character."""
    escaped = body_of(CHAT[0], ["\ud83d", "\udc1f"])
    bytes_ = b"".join(body_of(CHAT[0], ["-"]).replace(b"-", half) for half in (b"\xc3", b"\xa9"))
    for body in (escaped, bytes_):
        assert joined(body, ChatAssembler().adds) == body


def test_a_string_that_is_no_value_of_the_text_is_left_alone() -> None:
    """A provider that writes what is looked for itself changes nothing."""
    probe = chat({"content": "what a run's events differ in"}, note="{}")
    body = b"".join(b"data: " + json.dumps(probe | {"note": text}).encode() + b"\n\n" for text in "ab")
    assert joined(body, ChatAssembler().adds) == body
