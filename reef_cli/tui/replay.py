"""A recording played back: a client that answers the dashboard with what was told then, at the times of then.

Nothing can be changed in it, and no daemon is asked. A request that the recording has is answered with its newest
answer up to the moment; a page of a list that it lacks is put together from the rows it has.
"""

import json
import math
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, urlencode

from daemon.core.client import Client, told_error
from daemon.core.errors import Conflict, NotFound, ReefError, Unreachable, UsageError
from reef_cli.tui.recording import FORMAT, MOST_BYTES

#: Why nothing can be changed.
FIXED: Final = "this is a recording: nothing can be changed in it"
#: Why a place is empty.
NOT_RECORDED: Final = "this is not in the recording"
_CURSORS: Final = ("before", "after", "limit", "ids")


@dataclass(slots=True)
class Heard:
    """One answer: its lines with the seconds they came at. ``end`` is None where the recording stops before it."""

    at: float
    lines: list[tuple[float, bytes]] = field(default_factory=list)
    end: float | None = None
    error: Mapping[str, Any] | None = None

    @property
    def lost(self) -> bool:
        """Nothing answered."""
        return self.error is not None and self.error["error"]["kind"] == Unreachable.kind

    def body(self) -> bytes:
        return b"".join(line for _, line in self.lines)


@dataclass(slots=True)
class Recording:
    """``trouble`` says where the file could not be read any further; ``seconds``: how long it is."""

    began_ns: int
    answers: dict[str, list[Heard]] = field(default_factory=dict)
    seconds: float = 0.0
    trouble: str | None = None


def load(path: Path) -> Recording:
    """What a file of `reef_cli.tui.recording.Tape` holds, up to its first bad line. Raises UsageError."""
    try:
        with path.open("rb") as file:
            lines = file.read(2 * MOST_BYTES).splitlines(keepends=True)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="reef tui --replay FILE") from error
    recording = Recording(_began_ns(path, lines[0] if lines else b""))
    numbers: dict[int, Heard] = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            _take(recording, numbers, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            what = "is no line of a recording" if line.endswith(b"\n") else "is cut off"
            recording.trouble = f"line {number} {what}; what stands before it is played"
            break
    return recording


def _began_ns(path: Path, line: bytes) -> int:
    try:
        head = json.loads(line)
        form, began_ns = head["reef_recording"], int(head["began_ns"])
        if not 0 <= began_ns < 1 << 63:
            raise ValueError(f"began_ns {began_ns}")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{path}, line 1: this is no recording", hint="reef tui --record FILE makes one") from error
    if form != FORMAT:
        raise UsageError(f"{path}, line 1: a recording of form {form!r:.20}; this Reef plays {FORMAT}")
    return began_ns


def _take(recording: Recording, numbers: dict[int, Heard], entry: Mapping[str, Any]) -> None:
    at, number = float(entry["at"]), entry["n"]
    if not 0 <= at < math.inf:
        raise ValueError(f"at {at}")
    if "get" in entry:
        before = recording.answers.setdefault(str(entry["get"]), [])
        if before and before[-1].end is None:
            before[-1].end = at  # a stream that was left for a new one
        numbers[number] = Heard(at)
        before.append(numbers[number])
    elif "line" in entry:
        numbers[number].lines.append((at, entry["line"].encode("utf-8", "surrogateescape")))
    else:
        if entry["end"] is not None:
            told_error(entry["end"])  # whether it is one
        numbers[number].error = entry["end"]
        numbers[number].end = at
    recording.seconds = at


class Replay(Client):
    """Plays from the moment it is made, ``speed`` times as fast as it was. Streams last as long as the player does."""

    def __init__(self, recording: Recording, *, speed: float = 1.0) -> None:
        super().__init__(Path("/nonexistent"))
        self._recording = recording
        self._speed = speed
        self._began = time.monotonic()
        self._read: dict[str, int] = {}  # how often a stream was asked for
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def now_ns(self) -> int:
        """What the clock showed then."""
        return self._recording.began_ns + int(min(self._at, self._recording.seconds) * 1e9)

    def left(self) -> float:
        """Seconds until it is over."""
        return max(self._recording.seconds - self._at, 0.0) / self._speed

    def title(self) -> str:
        """What is played, and what is wrong with it."""
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(self._recording.began_ns / 1e9))
        over = ", played to its end" if not self.left() else ""
        return f"recording of {began}{f': {self._recording.trouble}' if self._recording.trouble else over}"

    @property
    def _at(self) -> float:
        return (time.monotonic() - self._began) * self._speed

    def break_off(self) -> None:
        """Nothing here is in doubt."""

    def stop(self) -> None:
        """End what waits."""
        self._stopped.set()

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        scope: str | None = None,
        silence: float | None = None,
    ) -> Iterator[Iterator[bytes]]:
        if method != "GET":
            raise Conflict(FIXED, hint="reef tui is the dashboard itself")
        if silence is not None:
            yield self._streamed(self._next(path))
            return
        heard = self._newest(path)
        if heard is None:
            yield iter([self._page(path)])
            return
        _fail(heard)
        yield iter([heard.body()])

    def _newest(self, path: str) -> Heard | None:
        """The newest whole answer up to now, or the first one of later: it is asked for earlier than it was then.

        That the daemon was gone for a while is the stream's to say.
        """
        found = [heard for heard in self._recording.answers.get(path, ()) if heard.end is not None and not heard.lost]
        return found[max(bisect_right([heard.at for heard in found], self._at) - 1, 0)] if found else None

    # -- streams ------------------------------------------------------------------------------------

    def _next(self, path: str) -> Heard:
        """The stream that was read then, one after the other; the last one again and again."""
        found = self._recording.answers.get(path)
        if not found:
            raise _missing(path)
        with self._lock:
            count = self._read[path] = self._read.get(path, -1) + 1
        return found[min(count, len(found) - 1)]

    def _streamed(self, heard: Heard) -> Iterator[bytes]:
        for at, line in heard.lines:
            if not self._reached(at):
                return
            yield line
        if self._reached(math.inf if heard.end is None else heard.end):
            _fail(heard)

    def _reached(self, at: float) -> bool:
        """Wait until then; False when the player is stopped."""
        while (left := (at - self._at) / self._speed) > 0:
            if self._stopped.wait(min(left, 3600.0)):
                return False
        return True

    # -- pages that were not asked for ----------------------------------------------------------------

    def _page(self, path: str) -> bytes:
        """A page of a list, out of the rows of its other pages."""
        place, query, cursors = _split(path)
        ids = parse_qs(path.partition("?")[2]).get("ids")
        rows: dict[str, Mapping[str, Any]] = {}
        total = 0
        for asked, answers in self._recording.answers.items():
            if _split(asked)[:2] != (place, query):
                continue
            for heard in answers:
                if heard.at > self._at or heard.end is None or heard.error:
                    continue
                told = json.loads(heard.body())
                if not isinstance(told, dict) or not all("seq" in row for row in told.get("items", [{}])):
                    raise _missing(path)
                rows |= {row["receipt" if "receipt" in row else "id"]: row for row in told["items"]}
                total = told.get("total", 0)
        if not rows:
            raise _missing(path)
        if ids is not None:
            named = [rows[id] for id in ids[0].split(",") if id in rows]
            return json.dumps({"items": named, "next": None, "total": None}).encode()
        page, more = _cut(sorted(rows.values(), key=lambda row: int(row["seq"])), cursors)
        return json.dumps({"items": page, "next": str(page[-1]["seq"]) if more else None, "total": total}).encode()


def _split(path: str) -> tuple[str, str, dict[str, int]]:
    """A request's path, what it asks for, and where in the list."""
    place, _, query = path.partition("?")
    words = parse_qsl(query)
    cursors = {name: int(value) for name, value in words if name in _CURSORS and value.isdecimal()}
    return place, urlencode([word for word in words if word[0] not in _CURSORS]), cursors


def _cut(rows: list[Mapping[str, Any]], cursors: Mapping[str, int]) -> tuple[list[Mapping[str, Any]], bool]:
    """The page that the cursors name, in the daemon's order (newest first, unless after one); whether more follow."""
    limit = cursors.get("limit", 50)
    if "after" in cursors:
        found = [row for row in rows if row["seq"] > cursors["after"]]
    else:
        found = [row for row in rows if row["seq"] < cursors.get("before", math.inf)][::-1]
    return found[:limit], len(found) > limit


def _fail(heard: Heard) -> None:
    """Raise what the request ended with then."""
    if heard.error:
        raise told_error(heard.error) from (FileNotFoundError() if heard.error.get("gone") else None)


def _missing(path: str) -> ReefError:
    return NotFound(f"{NOT_RECORDED}: {path.partition('?')[0]}")
