"""A recording of what the dashboard was told: its requests' answers and the streams it read, each line with its time.

A file of JSON lines, readable by its owner alone. The first line says what it is; each of the others belongs to one
request, by its number ``n``, ``at`` so many seconds from the beginning:

    {"reef_recording": 1, "version": "0.4.0", "began_ns": 1769860800000000000}
    {"at": 0.012, "n": 1, "get": "/reef/sessions?limit=100"}
    {"at": 0.015, "n": 1, "line": "{\\"items\\": …}"}
    {"at": 0.015, "n": 1, "end": null}

Only what is read goes in, never what is sent; secrets in it were replaced before the daemon stored it.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from daemon.core.client import Client
from daemon.core.errors import ReefError, Unreachable, UsageError
from daemon.core.version import __version__

FORMAT: Final = 1
#: A recording ends here: hours of a busy dashboard, and what one still attaches to a bug report.
MOST_BYTES: Final = 64 << 20


class Tape:
    """The file, written from any thread, a line at once: a program that is killed leaves all but its last line.

    ``ended`` says why nothing is written any more; recording never breaks what it records. Raises UsageError for a file
    that is there already or cannot be made.
    """

    def __init__(self, path: Path, *, most: int = MOST_BYTES) -> None:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError as error:
            raise UsageError(f"{path} is there already", hint="record into a new file") from error
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}", hint="another --record FILE") from error
        self.path = path
        self.ended: str | None = None
        self.bytes = 0
        self._most = most
        self._file = os.fdopen(handle, "w", encoding="ascii", buffering=1)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._requests = 0
        self._write({"reef_recording": FORMAT, "version": __version__, "began_ns": time.time_ns()})

    def client(self, path: Path, timeout: float) -> "Recorder":
        return Recorder(path, self, timeout=timeout)

    def begin(self, path: str) -> int:
        """A GET was sent; its number."""
        with self._lock:
            self._requests += 1
            number = self._requests
        self.note(number, get=path)
        return number

    def note(self, number: int, **what: object) -> None:
        self._write({"at": round(time.monotonic() - self._began, 3), "n": number, **what})

    def close(self) -> None:
        with self._lock:
            self.ended = self.ended or "it was closed"
            with suppress(OSError):  # what a full disk did not take it does not take now
                self._file.close()

    def _write(self, entry: Mapping[str, object]) -> None:
        text = json.dumps(entry, separators=(",", ":")) + "\n"
        with self._lock:
            if self.ended:
                return
            if self.bytes + len(text) > self._most:
                self.ended = f"it is full: {self._most >> 20} MB"
                return
            try:
                self._file.write(text)
            except OSError as error:
                self.ended = str(error.strerror)
            self.bytes += len(text)


class Recorder(Client):
    """A client whose answers are kept as well."""

    def __init__(self, path: Path, tape: Tape, *, timeout: float) -> None:
        super().__init__(path, timeout=timeout)
        self._tape = tape
        self._left = False

    def break_off(self) -> None:
        """The end of a stream that is left is nothing the daemon told."""
        self._left = True
        super().break_off()

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
        opened = super()._open(method, path, body, scope=scope, silence=silence)
        if method != "GET":
            with opened as lines:
                yield lines
            return
        number = self._tape.begin(path)
        self._left = False
        try:
            with opened as lines:
                yield self._noted(number, lines)
        except (ReefError, OSError, ValueError) as error:
            if not self._left:
                self._tape.note(number, end=_told(error))
            raise
        self._tape.note(number, end=None)

    def _noted(self, number: int, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._tape.note(number, line=line.decode("utf-8", "surrogateescape"))
            yield line


def _told(error: Exception) -> dict[str, object]:
    """An error as `reef_cli.tui.replay` raises it again; ``gone``: nothing listened at all."""
    if not isinstance(error, ReefError):
        error = Unreachable(f"the daemon broke off: {error}", hint="reef logs")
    gone = isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError)
    return {**error.envelope(), "gone": gone}
