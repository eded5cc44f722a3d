"""`reef logs`: the daemon's log file, rotated ones included. Works with the daemon down; that is when it is needed."""

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TextIO

from daemon.core.errors import NotFound, UsageError
from daemon.core.paths import home
from reef_cli import output, times
from reef_cli.parameters import AsJson, Help

#: As `daemon.server.log` begins its lines: UTC.
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_POLL = 0.2


def logs(
    *,
    lines: Annotated[int, Help("How many of the last lines.", "--lines", "-n")] = 200,
    follow: Annotated[bool, Help("Go on as lines come; ends with ctrl+c.", "--follow", "-f")] = False,
    since: Annotated[str | None, Help("Only from then on: 30s, 10m, 2h, 1d, or 2026-01-31T12:00 (UTC).")] = None,
    as_json: AsJson = False,
) -> None:
    """With --json each line is {"line": …}."""
    path = home().log
    if not path.exists() and not follow:
        raise NotFound(f"no log at {path}", hint="reef start")
    start = _start(since) if since else None
    current = _opened(path) if path.exists() else None
    for line in deque(_kept(path, current, start), maxlen=max(lines, 0)):
        _print(line, as_json)
    if follow:
        for line in _following(path, current):
            _print(line, as_json)
    if current is not None:
        current.close()


def _print(line: str, as_json: bool) -> None:
    text = line.rstrip("\n")
    if as_json:
        output.jsonl({"line": text})
    else:
        output.line(output.visible(text))


def _kept(path: Path, current: TextIO | None, start: str | None) -> Iterator[str]:
    """Lines from ``start`` on. A line without a stamp (a traceback's) goes with the one before it."""
    included = start is None
    for line in _all(path, current):
        if start is not None and _STAMP.match(line):
            included = line[: len(start)] >= start
        if included:
            yield line


def _all(path: Path, current: TextIO | None) -> Iterator[str]:
    """Lines of all files, oldest first; ``current`` is left at its end."""
    for file in sorted(path.parent.glob(f"{path.name}.*"), key=_age, reverse=True):
        with _opened(file) as stream:
            yield from stream
    if current is not None:
        yield from current


def _age(file: Path) -> int:
    number = file.suffix[1:]
    return int(number) if number.isdigit() else 0


def _following(path: Path, stream: TextIO | None) -> Iterator[str]:
    """Lines as they are appended from where ``stream`` stands, across rotations."""
    waiting = ""
    while True:
        line = stream.readline() if stream else ""
        waiting += line
        if waiting.endswith("\n"):
            yield waiting
            waiting = ""
        elif not line:
            time.sleep(_POLL)
            stream = _renewed(path, stream)


def _renewed(path: Path, stream: TextIO | None) -> TextIO | None:
    """The file now at ``path``: the same one still open, or the new one after a rotation."""
    try:
        now = path.stat().st_ino
    except FileNotFoundError:
        return stream
    if stream is not None:
        if os.fstat(stream.fileno()).st_ino == now:
            return stream
        stream.close()
    return _opened(path)


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8", errors="replace")


def _start(text: str) -> str:
    """The moment as the log writes it, so that text compares as time does."""
    ago = times.span(text)
    if ago is not None:
        moment = time.gmtime(time.time() - ago)
        return time.strftime("%Y-%m-%dT%H:%M:%S", moment)
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?", text):
        return text.replace(" ", "T")
    raise UsageError(f"--since {text!r} is not a time", hint="for example 10m, 2h or 2026-01-31T12:00")
