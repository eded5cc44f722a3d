"""Log files as `reef logs` and the dashboard read them: all of one's files, as they grow, sifted by level and words.

Nothing here asks the daemon: a log is needed most when that is down.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TextIO, get_args

from daemon.core.errors import UsageError
from daemon.core.paths import Home

Level = Literal["debug", "info", "warning", "error"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
#: As `daemon.server.log` begins its lines: UTC.
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_HEAD: Final = re.compile(rf"{_STAMP.pattern}\.\d+Z ([A-Z]+) ")
_JOB: Final = re.compile(r"job_[0-9A-Za-z]+")


def path_of(place: Home, name: str) -> Path:
    """The file of the log named ``daemon``, ``engine``, or by a job's id. Raises UsageError."""
    if name == "daemon":
        return place.log
    if name == "engine":
        return place.logs / "engine.log"
    if not _JOB.fullmatch(name):
        raise UsageError(f"there is no log of {name[:80]!r}", hint="daemon, engine, or a job's id: reef jobs list")
    return place.jobs / name / "log"


def names(place: Home, most: int) -> list[str]:
    """The logs there are: the daemon's, the engine's, those of the newest jobs."""
    found: list[tuple[float, str]] = []
    with suppress(OSError):
        for folder in place.jobs.iterdir():
            with suppress(OSError):
                found.append(((folder / "log").stat().st_mtime, folder.name))
    jobs = [name for _, name in sorted(found, reverse=True)[:most] if _JOB.fullmatch(name)]
    return ["daemon", *(["engine"] if path_of(place, "engine").exists() else []), *jobs]


def level_of(line: str) -> str | None:
    """In lower case; None for a line that does not begin with a stamp: it goes on with the one before it."""
    head = _HEAD.match(line)
    return head[1].lower() if head else None


def leveled(query: str) -> tuple[Level | None, str]:
    """``level:warning no tasks`` as a level and words. Raises UsageError."""
    level: Level | None = None
    words = []
    for word in query.split(" "):
        if not word.startswith("level:"):
            words.append(word)
            continue
        level = next((one for one in LEVELS if one == word.removeprefix("level:")), None)
        if level is None:
            raise UsageError(f"{word[:80]!r} names no level", hint=f"level:{', level:'.join(LEVELS)}")
    return level, " ".join(words).strip()


class Tail:
    """One log as it grows, across rotations; not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: TextIO | None = None
        self._waiting = ""

    def lines(self) -> Iterator[str]:
        """What is there, rotated files first. Read it to its end before asking for `more`."""
        for file in sorted(self.path.parent.glob(f"{self.path.name}.*"), key=_age, reverse=True):
            with _opened(file) as stream:
                yield from stream
        if self.path.exists():
            self._stream = _opened(self.path)
            yield from self._stream

    def more(self) -> list[str]:
        """The whole lines that came since."""
        found = self._rest()
        if not found:
            self._renew()
            found = self._rest()
        return found

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _rest(self) -> list[str]:
        found = []
        while self._stream is not None and (line := self._stream.readline()):
            self._waiting += line
            if self._waiting.endswith("\n"):
                found.append(self._waiting)
                self._waiting = ""
        return found

    def _renew(self) -> None:
        """Go over to the file that is now at the path: after a rotation, or where one was cut (a job's log)."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return
        if self._stream is not None:
            here = os.fstat(self._stream.fileno())
            if here.st_ino == now.st_ino and here.st_size >= self._stream.tell():
                return
            self.close()
        self._stream = _opened(self.path)


class Sieve:
    """Which lines to show, asked in their order: from a level up, with words in them (in any case), from a moment on.
    A line without a stamp (a traceback's) goes with the one before it.
    """

    def __init__(self, level: Level | None = None, words: str = "", start: str = "") -> None:
        self._levels = LEVELS[LEVELS.index(level) :] if level else ()
        self._words = words.casefold()
        self._start = start
        self._open = not start  # lines before the first stamp
        self._head_fits = not words

    def lets(self, line: str) -> bool:
        found = self._words in line.casefold()
        if _STAMP.match(line):
            level = level_of(line)
            fits = not self._levels or level in self._levels or level == "critical"
            self._open = fits and line[: len(self._start)] >= self._start
            self._head_fits = found
        return self._open and (found or self._head_fits)


def _age(file: Path) -> int:
    number = file.suffix[1:]
    return int(number) if number.isdigit() else 0


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8", errors="replace")
