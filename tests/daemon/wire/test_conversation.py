"""Ids in bodies, as the vendors' protocols and real agents write them."""

import json

import pytest

from daemon.wire import conversation

UUID = "01a228c6-b124-7d12-a51f-356e4745501f"


def keys(**body: object) -> tuple[str, ...]:
    return conversation.ids(json.dumps({"model": "m", "messages": [], **body}).encode()).keys


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"prompt_cache_key": UUID}, UUID),
        ({"prompt_cache_key": "ses_dd7352896ffe5N9AB4An0vON6N"}, "ses_dd7352896ffe5N9AB4An0vON6N"),
        ({"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": UUID})}}, UUID),
        ({"metadata": {"user_id": f"user_0f_account_{UUID[::-1]}_session_{UUID}"}}, UUID),
        ({"metadata": {"session_id": "s"}}, "s"),
        ({"client_metadata": {"session_id": UUID, "thread_id": "t"}}, UUID),
        ({"conversation": {"id": "conv_1"}}, "conv_1"),
        ({"conversation": "conv_1"}, "conv_1"),
    ],
)
def test_the_places_where_a_conversation_is_named(body: dict[str, object], key: str) -> None:
    assert keys(**body) == (key,)


@pytest.mark.parametrize(
    "body",
    [
        {"prompt_cache_key": "my-app-v2"},
        {"prompt_cache_key": 7},
        {"metadata": {"user_id": "alice"}},
        {"metadata": {"user_id": "{broken"}},
        {"metadata": ["session_id"]},
        {"client_metadata": None, "conversation": [UUID]},
        {"user": "session_id"},
    ],
)
def test_what_names_no_conversation_is_not_taken_for_one(body: dict[str, object]) -> None:
    assert keys(**body) == ()


def test_one_id_in_several_places_counts_once_and_the_strongest_is_first() -> None:
    assert keys(prompt_cache_key=UUID, client_metadata={"session_id": UUID}, conversation="c") == (UUID, "c")


def test_the_answer_that_a_request_goes_on_from() -> None:
    assert conversation.ids(b'{"input":[],"previous_response_id":"resp_1"}').previous == "resp_1"
    assert conversation.ids(b'{"input":[],"previous_response_id":null}').previous is None


@pytest.mark.parametrize(
    "body", [b"", b"{", b'"session_id"', b"[1]", b'{"metadata":{"session_id":"\\ud800"}}', b"\xff"]
)
def test_any_bytes_are_taken(body: bytes) -> None:
    conversation.ids(body)
    conversation.ids(body + b'"prompt_cache_key"')
    conversation.answer_id(body)


@pytest.mark.parametrize(
    ("response", "id"),
    [
        (b'{"choices":[{"message":{"tool_calls":[{"id":"call_1"}]}}],"id":"chatcmpl-1"}', "chatcmpl-1"),
        (b'data: {"id":"chatcmpl-2","choices":[]}\n\ndata: [DONE]\n\n', "chatcmpl-2"),
        (b': hello\n\nevent: message_start\ndata: {"type":"message_start","message":{"id":"msg_1"}}\n\n', "msg_1"),
        (b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n', "resp_1"),
        (b'{"error":{"message":"no"}}', None),
        (b'{"id":null}', None),
        (b"<html>", None),
    ],
)
def test_the_id_of_an_answer(response: bytes, id: str | None) -> None:
    assert conversation.answer_id(response) == id
