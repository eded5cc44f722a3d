"""Cutting a request body into its messages without changing a byte.

Invariant: ``head + separator.join(raws) + tail == body``. Where that cannot be had (another separator here and there,
no list of messages) there is no split at all, never a lossy one.

Agents send their conversation again with each turn. `Splitter` knows the starts of recent bodies: what begins like
one of them is cut only after it, and its messages are the very same objects, so that whoever remembers things by them
pays nothing either.
"""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Final

import msgspec

from daemon.wire import jsontext

_CANDIDATES: Final = 64
#: A body this short is cut whole: that costs less than to look for its start.
_SHORT: Final = 8192
#: How many starts are known, and how large their bodies may be together, each counted.
_STARTS: Final = 32
_STARTS_SIZE: Final = 12 * 1024 * 1024
#: A body is known by all of its messages, and by all but these last: Anthropic clients move their cache marks there.
_MOVING: Final = 3
_END: Final = 64
#: Compared at a time.
_PIECE: Final = 64 << 10
_EMPTY: Final = msgspec.Raw(b"")
_ITEMS: Final = list[msgspec.Raw]
_BETWEEN: Final = re.compile(rb"[\s,]*")


class _Top(msgspec.Struct):
    messages: msgspec.Raw = _EMPTY
    system: msgspec.Raw = _EMPTY
    tools: msgspec.Raw = _EMPTY


class _ResponsesTop(msgspec.Struct, rename={"messages": "input", "system": "instructions"}):
    messages: msgspec.Raw = _EMPTY
    system: msgspec.Raw = _EMPTY
    tools: msgspec.Raw = _EMPTY


@dataclass(frozen=True, slots=True)
class Names:
    """What a dialect calls its list of messages, and the fields around it."""

    top: type[_Top] | type[_ResponsesTop]
    messages: bytes

    @property
    def opening(self) -> bytes:
        """A body up to the first item of its list, which is 0."""
        return b'{"' + self.messages + b'":[0'


MESSAGES: Final = Names(_Top, b"messages")
RESPONSES: Final = Names(_ResponsesTop, b"input")


@dataclass(frozen=True, slots=True)
class Split:
    """``system`` and ``tools`` are those fields' JSON as sent, empty when absent."""

    head: bytes
    separator: bytes
    raws: tuple[bytes, ...]
    tail: bytes
    system: bytes
    tools: bytes


@dataclass(frozen=True, slots=True)
class _Start:
    """The first ``size`` bytes of a body, up to the end of one of its messages. ``split`` is of them alone: its tail is
    empty, and its fields are those before the messages. Starts of one body share it: copies take longer than all else.
    """

    body: bytes
    size: int
    split: Split

    def begins(self, body: bytes) -> bool:
        known = self.body
        return all(body.startswith(known[at : min(at + _PIECE, self.size)], at) for at in range(0, self.size, _PIECE))

    @property
    def key(self) -> tuple[int, bytes]:
        return self.size, self.body[max(0, self.size - _END) : self.size]


class Splitter:
    """Cuts bodies, the known part of each for free. Thread-safe."""

    def __init__(self, names: Names = MESSAGES) -> None:
        self._names = names
        #: By length and last bytes, for bodies of one conversation are alike for megabytes and part there. Latest last.
        self._starts: dict[tuple[int, bytes], _Start] = {}
        #: Their lengths, in order.
        self._sizes: list[int] = []
        self._size = 0
        self._lock = Lock()

    def split(self, body: bytes) -> Split | None:
        """As `split`."""
        if len(body) <= _SHORT:
            return split(body, self._names)
        start = self._known(body)
        cut = _go_on(body, start, self._names) if start else None
        if cut is None:
            start, cut = None, split(body, self._names)
        if cut is not None:
            self._remember(body, cut, start)
        return cut

    def _known(self, body: bytes) -> _Start | None:
        """The longest start that the body begins with."""
        with self._lock:
            for size in dict.fromkeys(reversed(self._sizes[: bisect_right(self._sizes, len(body))])):
                start = self._starts.get((size, body[max(0, size - _END) : size]))
                if start is not None and start.begins(body):
                    return start
        return None

    def _remember(self, body: bytes, cut: Split, start: _Start | None) -> None:
        heads = start.split if start is not None else _heads_own(cut.head, self._names)
        for count in {len(cut.raws), len(cut.raws) - _MOVING}:
            # The separator is only known between two messages.
            if heads is None or count < 2:
                continue
            left_out = cut.raws[count:]
            size = len(body) - len(cut.tail) - sum(map(len, left_out)) - len(cut.separator) * len(left_out)
            own = bytes(heads.system), bytes(heads.tools)
            self._add(_Start(body, size, Split(cut.head, cut.separator, cut.raws[:count], b"", *own)))

    def _add(self, start: _Start) -> None:
        key = start.key
        with self._lock:
            self._drop(key)
            self._starts[key] = start
            insort(self._sizes, start.size)
            self._size += len(start.body)
            while len(self._starts) > _STARTS or self._size > _STARTS_SIZE:
                self._drop(next(iter(self._starts)))

    def _drop(self, key: tuple[int, bytes]) -> None:
        if (start := self._starts.pop(key, None)) is not None:
            del self._sizes[bisect_left(self._sizes, start.size)]
            self._size -= len(start.body)


def _heads_own(head: bytes, names: Names) -> _Top | _ResponsesTop | None:
    """The fields that stand before the messages; None when that cannot be told."""
    try:
        top: _Top | _ResponsesTop = jsontext.decode_as(head + b"0]}", names.top)
    except jsontext.NotJson:
        return None
    return top


def _go_on(body: bytes, start: _Start, names: Names) -> Split | None:
    """Cut what comes after a known start: it goes on inside the list of messages, so a list is put before it."""
    known, rest = start.split, body[start.size :]
    added = split(names.opening + rest, names)
    if added is None or added.head != names.opening[:-1] or added.raws[0] != b"0":
        return None
    if len(added.raws) > 1 and added.separator != known.separator:
        return None
    return Split(
        head=known.head,
        separator=known.separator,
        raws=known.raws + added.raws[1:],
        tail=added.tail,
        system=added.system or known.system,
        tools=added.tools or known.tools,
    )


def split(body: bytes, names: Names = MESSAGES) -> Split | None:
    """None when the body is not a JSON object with a list of messages, or does not join back. A text in place of the
    list (Responses) is its one message.
    """
    whole = body
    try:
        top = msgspec.json.decode(whole, type=names.top)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        whole = jsontext.masked(body)
        try:
            top = jsontext.decode_as(whole, names.top)
        except jsontext.NotJson:
            return None
    array = bytes(top.messages)
    start = _position(whole, array, names) if array[:1] in ((b"[",) if names is MESSAGES else (b"[", b'"')) else -1
    if start < 0:
        return None
    spans = _spans(array, start) if array.startswith(b"[") else [(start, start + len(array))]
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
        begin = _BETWEEN.match(array, position).end()  # type: ignore[union-attr]  # matches nothing at least
        position = begin + memoryview(item).nbytes
        spans.append((start + begin, start + position))
    return spans


def _position(body: bytes, array: bytes, names: Names) -> int:
    """Where the list stands that is the field's value: the same text may also stand somewhere else. -1 if not found."""
    places = list(islice(_places(body, array), _CANDIDATES))
    if len(places) == 1:
        return places[0]
    probes = ((place, body[:place] + b"[0]" + body[place + len(array) :]) for place in places)
    return next((place for place, probe in probes if _is_value(probe, names)), -1)


def _places(body: bytes, array: bytes) -> Iterator[int]:
    """Everywhere the list's text stands. Looks for its start only: a search for all of it costs ten times as much."""
    start = array[:64]
    place = body.find(start)
    while place >= 0:
        if body.startswith(array, place):
            yield place
        place = body.find(start, place + 1)


def _is_value(probe: bytes, names: Names) -> bool:
    try:
        return bytes(jsontext.decode_as(probe, names.top).messages) == b"[0]"
    except jsontext.NotJson:
        return False
