"""What bodies tell of the conversation that they belong to: ids, nothing else. Pure, and never raises.

A request names it where the vendor's protocol has a place for it; an answer has an id that a later request may go on
from. Ids that a program shares among all of its conversations (a constant cache key) must not be taken for one.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from daemon.wire import jsontext
from daemon.wire.sse import events, looks_like_events

#: Looked for first: hardly any body has one of these.
_WORDS: Final = (
    b'"prompt_cache_key"', b'"user_id"', b'"session_id"', b'"client_metadata"', b'"previous_response_id"',
    b'"conversation"',
)  # fmt: skip
#: What is made to be unique: a UUID, or a long mark after a short word. `prompt_cache_key` may be any word.
_UNIQUE: Final = re.compile(
    r"(?:[A-Za-z]{1,8}[_-])?(?=\S*\d)(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Za-z]{20,64})"
)
#: The form of `metadata.user_id` before it was JSON.
_IN_USER_ID: Final = re.compile(r"_session_([0-9a-fA-F-]{36})$")
_MOST: Final = 512
#: An answer's id stands in one of its first events.
_EVENTS: Final = 3
_EMPTY: Final = msgspec.Raw(b"")


class _Body(msgspec.Struct):
    prompt_cache_key: msgspec.Raw = _EMPTY
    metadata: msgspec.Raw = _EMPTY
    client_metadata: msgspec.Raw = _EMPTY
    previous_response_id: msgspec.Raw = _EMPTY
    conversation: msgspec.Raw = _EMPTY


class _Id(msgspec.Struct):
    id: msgspec.Raw = _EMPTY


class _Head(msgspec.Struct):
    """An answer, or an event that has it in one of two fields."""

    id: msgspec.Raw = _EMPTY
    message: _Id = msgspec.field(default_factory=_Id)
    response: _Id = msgspec.field(default_factory=_Id)


@dataclass(frozen=True, slots=True)
class Ids:
    """``keys`` name the conversation, strongest first; ``previous`` is the id of the answer it goes on from."""

    keys: tuple[str, ...] = ()
    previous: str | None = None


def ids(body: bytes) -> Ids:
    """Of a request, whose messages may be left out."""
    if not any(word in body for word in _WORDS):
        return Ids()
    try:
        top: _Body = jsontext.decode_as(body, _Body)
    except jsontext.NotJson:
        return Ids()
    client, metadata, conversation = (_value(raw) for raw in (top.client_metadata, top.metadata, top.conversation))
    cache_key = _text(_value(top.prompt_cache_key))
    found = (
        _field(client, "session_id"),
        conversation if isinstance(conversation, str) else _field(conversation, "id"),
        _field(metadata, "session_id"),
        _of_user(_field(metadata, "user_id")),
        cache_key if cache_key and _UNIQUE.fullmatch(cache_key) else None,
    )
    return Ids(
        tuple(dict.fromkeys(key for one in found if (key := _text(one)))), _text(_value(top.previous_response_id))
    )


def answer_id(response: bytes) -> str | None:
    """The id that an answer has on the wire, whole or streamed."""
    if looks_like_events(response):
        heads = [_head(data.encode()) for _, data in islice(events(response), _EVENTS)]
    else:
        heads = [_head(response)]
    for head in heads:
        for raw in (head.id, head.message.id, head.response.id):
            if id := _text(_value(raw)):
                return id
    return None


def _head(raw: bytes) -> "_Head":
    try:
        found: _Head = jsontext.decode_as(raw, _Head) if raw else _Head()
    except jsontext.NotJson:
        return _Head()
    return found


def _of_user(user_id: object) -> object:
    """Anthropic's `metadata.user_id`: JSON with a session in it, or one text that ends in it."""
    if not isinstance(user_id, str):
        return None
    value = _value(user_id.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return value.get("session_id")
    found = _IN_USER_ID.search(user_id)
    return found[1] if found else None


def _value(raw: Any) -> object:
    try:
        return jsontext.decode(bytes(raw)) if raw else None
    except jsontext.NotJson:
        return None


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value[:_MOST] if isinstance(value, str) and value else None
