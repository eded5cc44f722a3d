"""What is not to be recorded: nothing while a person paused it, and nothing from folders that are denied.

Such requests are answered as any other. When it cannot be told whether a folder is denied, it is: a record that is
missing can be borne, one that should not be there cannot.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from daemon.core.errors import ConfigError
from daemon.core.paths import Home, open_plain, write_private

_log = logging.getLogger("reef.privacy")

#: What a receipt's ``x-reef-recording`` header says.
PAUSED: Final = "paused"
DENIED: Final = "denied"
IGNORE_FILE: Final = ".reefignore"
#: How long a folder's answer holds: a changed `.reefignore` counts soon, and a busy agent costs no reads.
_REMEMBERED_SECONDS: Final = 2.0
_REMEMBERED: Final = 256
_FILE_MOST: Final = 64 << 10
#: A folder on a disk that hangs must not hang a request.
_PATIENCE_SECONDS: Final = 2.0


class Pause:
    """Whether recording is paused; survives restarts. ``until_ns`` None: until it is resumed."""

    def __init__(self, home: Home) -> None:
        self._path = home.paused
        self._until_ns: int | None = None
        self._on = False
        self._load()

    def _load(self) -> None:
        try:
            until = json.loads(self._path.read_bytes())["until_ns"]
            if until is not None and type(until) is not int:
                raise ValueError("its end is no number")
            self._until_ns, self._on = until, True
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:  # somebody paused, that much is sure
            _log.warning("%s cannot be read (%s): recording stays paused until reef resume", self._path, error)
            self._on = True

    def on(self) -> bool:
        if self._on and self._until_ns is not None and time.time_ns() >= self._until_ns:
            self._on, self._until_ns = False, None
            with contextlib.suppress(OSError):  # left behind, it is as much over at the next start
                self._path.unlink(missing_ok=True)
        return self._on

    def until_ns(self) -> int | None:
        return self._until_ns

    def begin(self, seconds: float | None) -> None:
        """Durable when this returns. Blocking. Raises OSError."""
        until = None if seconds is None else time.time_ns() + int(seconds * 1e9)
        write_private(self._path, json.dumps({"until_ns": until}).encode())
        self._on, self._until_ns = True, until

    def end(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot remove {self._path}: {error.strerror}", hint=f"rm {self._path}") from error
        self._on, self._until_ns = False, None


class Privacy:
    """``deny`` are patterns of folders, as the configuration has them. Use it on the event loop."""

    def __init__(self, home: Home, deny: Sequence[str]) -> None:
        self.pause = Pause(home)
        self._deny = tuple(str(Path(pattern).expanduser()) for pattern in deny)
        self._known: dict[str, tuple[float, bool]] = {}

    async def unrecorded(self, cwd: str | None) -> str | None:
        """Why an exchange from that folder is not to be recorded; None where it is."""
        if self.pause.on():
            return PAUSED
        return DENIED if cwd is not None and await self._denied(cwd) else None

    async def _denied(self, cwd: str) -> bool:
        known = self._known.get(cwd)
        if known is not None and time.monotonic() - known[0] < _REMEMBERED_SECONDS:
            return known[1]
        try:
            looking = asyncio.to_thread(denied, Path(cwd), self._deny)
            found = await asyncio.wait_for(looking, _PATIENCE_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            _log.warning("it cannot be told whether a folder is denied, so it is: %s", type(error).__name__)
            found = True
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[cwd] = (time.monotonic(), found)
        return found


def denied(folder: Path, patterns: Sequence[str]) -> bool:
    """Whether ``folder`` matches one of the configuration's patterns, or a `.reefignore` above it says so. Blocking.
    Raises OSError for a `.reefignore` that cannot be read, ValueError for what is no path."""
    if not folder.is_absolute():
        return False
    real = folder.resolve()
    if any(_matches(place, patterns) for place in dict.fromkeys((folder, real))):
        return True
    for above in (real, *real.parents):
        if (words := _ignored(above)) is not None and _ignores(real.relative_to(above), words):
            return True
        if (above / ".git").exists():
            return False
    return False


def _matches(folder: Path, patterns: Sequence[str]) -> bool:
    """A pattern means a folder and all below it."""
    return any(fnmatchcase(str(place), pattern) for place in (folder, *folder.parents) for pattern in patterns)


def _ignored(folder: Path) -> list[str] | None:
    """The patterns of a folder's `.reefignore`; None without one."""
    try:
        with open_plain(folder / IGNORE_FILE) as file:
            text = file.read(_FILE_MOST).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _ignores(below: Path, words: Sequence[str]) -> bool:
    """Without a pattern all of the folder is meant; with some, what they match below it."""
    if not words:
        return True
    patterns = [word.strip("/") for word in words]
    places = [place for place in (below, *below.parents) if place != Path()]
    return any(
        pattern in (".", "*", "**") or any(fnmatchcase(str(place), pattern) for place in places) for pattern in patterns
    )
