"""`reef logs`: the daemon's log file, rotated ones included. Works with the daemon down; that is when it is needed."""

import re
import time
from collections import deque
from typing import Annotated

from daemon.core.errors import NotFound, UsageError
from daemon.core.paths import home
from reef_cli import output, times
from reef_cli.logfile import Sieve, Tail, leveled, path_of
from reef_cli.parameters import AsJson, Help

_POLL = 0.2


def logs(
    words: Annotated[str, Help("Only lines with these words, in any case; level:warning: from that level up.")] = "",
    *,
    lines: Annotated[int, Help("How many of the last lines.", "--lines", "-n")] = 200,
    follow: Annotated[bool, Help("Go on as lines come; ends with ctrl+c.", "--follow", "-f")] = False,
    since: Annotated[str | None, Help("Only from then on: 30s, 10m, 2h, 1d, or 2026-01-31T12:00 (UTC).")] = None,
    of: Annotated[str, Help("Which log: daemon, engine, or a job's id.")] = "daemon",
    as_json: AsJson = False,
) -> None:
    """With --json each line is {"line": …}."""
    tail = Tail(path_of(home(), of))
    if not tail.path.exists() and not follow:
        raise NotFound(f"no log at {tail.path}", hint="reef start" if of == "daemon" else "reef logs")
    sieve = Sieve(*leveled(words), start=_start(since) if since else "")
    for line in deque(filter(sieve.lets, tail.lines()), maxlen=max(lines, 0)):
        _print(line, as_json)
    while follow:
        for line in filter(sieve.lets, tail.more()):
            _print(line, as_json)
        time.sleep(_POLL)
    tail.close()


def _print(line: str, as_json: bool) -> None:
    text = line.rstrip("\n")
    if as_json:
        output.jsonl({"line": text})
    else:
        output.line(output.visible(text))


def _start(text: str) -> str:
    """The moment as the log writes it, so that text compares as time does."""
    ago = times.span(text)
    if ago is not None:
        moment = time.gmtime(time.time() - ago)
        return time.strftime("%Y-%m-%dT%H:%M:%S", moment)
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?", text):
        return text.replace(" ", "T")
    raise UsageError(f"--since {text!r} is not a time", hint="for example 10m, 2h or 2026-01-31T12:00")
