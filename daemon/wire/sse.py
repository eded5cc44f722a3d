"""Server-sent events on their way through: read for the record, never altered.

`Relay` may hold bytes back and must never change, reorder or lose one: everything that is fed comes out of `feed` and
`release`, in order. The bytes it keeps longest are the terminal event's, so that a record can be on disk before the
client sees the end.
"""

import re
from collections.abc import Iterator
from typing import Final

#: An unfinished event longer than this is passed on as it comes.
LIMIT: Final = 64 * 1024
#: The last one is kept back up to this: a Responses stream ends with all of its answer in one event.
LAST_LIMIT: Final = 16 * 1024 * 1024

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOUNDARY: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
#: A line that starts a stream's last event: a terminal one, or an error (a provider's 200 can still fail; the shapes
#: are those of vLLM, SGLang and gateways). ``"error": null`` in every chunk is somebody's habit and no error.
_LAST: Final = re.compile(
    rb"[\r\n](?:(?P<end>data: ?\[DONE\]|event: ?message_stop|data: ?\{\s*\"type\"\s*:\s*\"message_stop\""
    rb"|event: ?response\.(?:completed|incomplete)"
    rb"|data: ?\{[^{\r\n]{0,200}?\"type\"\s*:\s*\"response\.(?:completed|incomplete)\")"
    rb"|event: ?response\.failed|data: ?\{[^{\r\n]{0,200}?\"type\"\s*:\s*\"response\.failed\""
    rb"|event: ?error|data: ?\{\s*\"(?:error\"\s*:\s*[\"{]|detail\"\s*:\s*[\"{\[]|(?:type|object)\"\s*:\s*\"error\"))"
)
#: The beginning of a whole Responses answer that failed.
_FAILED: Final = re.compile(rb"\{[^{]{0,400}?\"object\"\s*:\s*\"response\"[^{]{0,400}?\"status\"\s*:\s*\"failed\"")
#: Looked for first: hardly any event has one of these, and looking costs a tenth of the pattern.
_ERRORS: Final = (b"error", b"detail")
_WORDS: Final = (
    b"[DONE]", b"message_stop", *_ERRORS, b"response.completed", b"response.incomplete", b"response.failed",
)  # fmt: skip
#: How a line begins that has one of them, at its end or behind blanks.
_LINES: Final = (b"\ndata:", b"\rdata:", b"\nevent:", b"\revent:")
#: Chat chunks name why they stop; some providers then send no ``[DONE]``. Gateways tell so that theirs broke off.
_FINISH: Final = re.compile(rb"\"finish_reason\"\s*:\s*\"(error\")?")
_FIELDS: Final = (b"data", b"event", b"id", b"retry", b":")
_BOM: Final = b"\xef\xbb\xbf"
#: Events that say nothing: comments, pings, and what belongs to the stream itself. Nothing is tried a second time:
#: blank lines could be shared out in more ways than there is time for.
_NOTHING: Final = re.compile(
    rb"(?:(?::[^\r\n]*|event: ?ping|data: ?\{\s*(?:\"type\"\s*:\s*\"ping\"[^\r\n]*)?\}|(?:id|retry):[^\r\n]*)?"
    rb"[\r\n]++)*+"
)
#: An event as nearly all are: at most a name and one line of data, perhaps behind comments.
_PLAIN: Final = re.compile(rb"(?::[^\r\n]*\n+)*(?:event: ?([^\r\n]*)\n)?data: ?([^\r\n]*)\n\n")


class Relay:
    """Cuts an SSE byte stream at event boundaries and keeps the last event back until `release`.

    What does not look like SSE (an error page, compressed bytes) passes at once.
    """

    def __init__(self) -> None:
        self._held = b""
        self._before = b"\n"  # the last byte passed on
        self._opaque: bool | None = None  # None: too early to tell
        self._ended = False
        self._finished = False
        #: What was passed on so far ends where an event ends.
        self.between = True
        #: An error event came by.
        self.failed = False

    @property
    def complete(self) -> bool:
        """Whether the stream said that it was over. What is no SSE counts as complete: only its framing can tell."""
        return (self._ended or self._finished or self._opaque is True) and not self.failed

    @property
    def finishing(self) -> bool:
        """Whether it has said why it ends: what comes still belongs to the end, such as usage."""
        return self._ended or self._finished

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes from upstream; returns those to send now."""
        if self._opaque is None:
            self._opaque = _opaque(self._held + chunk)
        if self._opaque:
            self.between = False
            return self._pass(self._held + chunk, b"")
        if self._opaque is None or self._ended:
            self._held += chunk
            if len(self._held) <= (LAST_LIMIT if self._ended else LIMIT):
                return b""
            self.between = False
            return self._pass(self._held, b"")
        data = self._held + chunk
        seen = self._before + data
        if not self._finished and (finish := _FINISH.search(seen)):
            self._finished, self.failed = True, finish[1] is not None
        last = _last(seen)
        if last:
            self._ended, self.failed = True, self.failed or last["end"] is None
        cut = max(_end_of_events(seen, last.start() + 1 if last else len(seen)) - 1, 0)
        if cut:
            self.between = True
        if not last and len(data) - cut > LIMIT:
            cut, self.between = len(data), False
        return self._pass(data[:cut], data[cut:])

    def release(self) -> bytes:
        """Everything held back."""
        return self._pass(self._held, b"")

    def _pass(self, now: bytes, later: bytes) -> bytes:
        self._before = now[-1:] or self._before
        self._held = later
        return now


def whole(body: bytes, *, stream: bool) -> Relay:
    """What a body says of its own end that no `Relay` saw passing: one that was compressed, or no stream."""
    relay = Relay()
    if stream:
        relay.feed(body)
    else:
        start = body[:LIMIT].lstrip()
        if any(word in start for word in _ERRORS):
            last = _LAST.match(b"\ndata: " + start)
            finish = _FINISH.search(start)
            relay.failed = (
                (last is not None and last["end"] is None)
                or _FAILED.match(start) is not None
                or (finish is not None and finish[1] is not None)
            )
    return relay


def _last(seen: bytes) -> re.Match[bytes] | None:
    """`_LAST` in it. Looked for from the line on that the first of its words may belong to: before that one it cannot
    be, and hundreds of events would take a quarter of a stream's time.
    """
    places = [place for word in _WORDS if (place := seen.find(word)) >= 0]
    if not places:
        return None
    first = min(places)
    return _LAST.search(seen, max(0, *(seen.rfind(line, 0, first) for line in _LINES)))


def _opaque(start: bytes) -> bool | None:
    """Whether a body that starts so is no SSE; None when it is too short to tell."""
    line = start.removeprefix(_BOM).lstrip(b"\r\n")
    if not line or _BOM.startswith(start):
        return None
    for field in _FIELDS:
        if line.startswith(field):
            return False
        if field.startswith(line):
            return None
    return True


def _end_of_events(data: bytes, limit: int) -> int:
    """Where the last event that is over before ``limit`` ends; 0 when none is."""
    # Most chunks end with an event: look at the end first.
    if data.endswith(b"\n\n", 0, limit):
        return limit
    end = 0
    for boundary in _BOUNDARY.finditer(data, 0, limit):
        end = boundary.end()
    return end


def says_nothing(events: bytes) -> bool:
    """Whether whole events are only such as keep a connection alive; also where there is none."""
    return _NOTHING.fullmatch(events) is not None


def looks_like_events(body: bytes) -> bool:
    """Whether a whole body is SSE."""
    return _opaque(body[:64]) is False


def _lines(body: bytes) -> Iterator[bytes]:
    """One by one: splitting megabytes at once would hold up the event loop's thread too."""
    start = 0
    for end in _LINE_END.finditer(body):
        yield body[start : end.start()]
        start = end.end()
    yield body[start:]


def events(body: bytes) -> Iterator[tuple[str, str]]:
    """(event, data) of each event that has data, also of a last one that was broken off. Comments are skipped.

    Follows the WHATWG specification; bytes that are no UTF-8 become U+FFFD.
    """
    body, position = body.removeprefix(_BOM), 0
    while plain := _PLAIN.match(body, position):
        name, data = plain.groups()
        yield "" if name is None else name.decode("utf-8", "replace"), data.decode("utf-8", "replace")
        position = plain.end()
    event, lines = "", list[str]()
    for raw in _lines(body[position:]):
        if not raw:
            if lines:
                yield event, "\n".join(lines)
            event, lines = "", []
            continue
        name, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            lines.append(value)
        elif name == "event":
            event = value
    if lines:
        yield event, "\n".join(lines)


class EventReader:
    """The same for a stream as it comes, wherever its chunks are cut."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[tuple[str, str]]:
        """The events that are whole now."""
        data, known = self._rest + chunk, max(0, len(self._rest) - 3)
        end = _end_of_events(data[known:], len(data) - known)
        end = end + known if end else 0
        self._rest = data[end:]
        return list(events(data[:end]))

    @property
    def unfinished(self) -> int:
        """How many bytes there are of an event that is not whole yet."""
        return len(self._rest)

    def finish(self) -> list[tuple[str, str]]:
        """A last event that no empty line ended."""
        return list(events(self._rest))
