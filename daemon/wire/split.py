"""Cutting a request body into its messages without changing a byte.

Invariant: ``head + separator.join(raws) + tail == body``. Where that cannot be had (another separator here and there,
no list of messages) there is no split at all, never a lossy one.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from daemon.wire import jsontext

_CANDIDATES: Final = 64
_EMPTY: Final = msgspec.Raw(b"")
_ITEMS: Final = list[msgspec.Raw]


class _Top(msgspec.Struct):
    messages: msgspec.Raw = _EMPTY
    system: msgspec.Raw = _EMPTY
    tools: msgspec.Raw = _EMPTY


@dataclass(frozen=True, slots=True)
class Split:
    """``system`` and ``tools`` are those fields' JSON as sent, empty when absent."""

    head: bytes
    separator: bytes
    raws: tuple[bytes, ...]
    tail: bytes
    system: bytes
    tools: bytes


def split(body: bytes) -> Split | None:
    """None when the body is not a JSON object with a list of messages, or does not join back."""
    whole = body
    try:
        top = msgspec.json.decode(whole, type=_Top)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        whole = jsontext.masked(body)
        try:
            top = jsontext.decode_as(whole, _Top)
        except jsontext.NotJson:
            return None
    array = bytes(top.messages)
    start = _position(whole, array) if array.startswith(b"[") else -1
    if start < 0:
        return None
    spans = _spans(array, start)
    if not spans:
        return None
    first, last = spans[0][0], spans[-1][1]
    found = Split(
        head=body[:first],
        separator=body[spans[0][1] : spans[1][0]] if len(spans) > 1 else b",",
        raws=tuple(body[begin:end] for begin, end in spans),
        tail=body[last:],
        system=bytes(top.system),
        tools=bytes(top.tools),
    )
    return found if found.head + found.separator.join(found.raws) + found.tail == body else None


def count(array: bytes) -> int:
    """How many items a JSON list has; 0 for anything else."""
    try:
        return len(msgspec.json.decode(array, type=_ITEMS)) if array else 0
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return 0


def _spans(array: bytes, start: int) -> list[tuple[int, int]]:
    """Where each item of the list stands, counted from ``start``. Only commas and blanks lie between two of them."""
    spans: list[tuple[int, int]] = []
    position = 1
    for item in msgspec.json.decode(array, type=_ITEMS):
        raw = bytes(item)
        begin = array.find(raw, position)
        position = begin + len(raw)
        spans.append((start + begin, start + position))
    return spans


def _position(body: bytes, array: bytes) -> int:
    """Where the list stands that is the field's value: the same text may also stand somewhere else. -1 if not found."""
    place = body.find(array)
    if body.find(array, place + 1) < 0:
        return place
    for _ in range(_CANDIDATES):
        if place < 0:
            break
        if _is_value(body[:place] + b"[0]" + body[place + len(array) :]):
            return place
        place = body.find(array, place + 1)
    return -1


def _is_value(probe: bytes) -> bool:
    try:
        return bytes(jsontext.decode_as(probe, _Top).messages) == b"[0]"
    except jsontext.NotJson:
        return False
