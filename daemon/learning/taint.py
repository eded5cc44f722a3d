"""Whether a harness would say what a tool, a file or a web page said: that waits for a person (SECURITY 7 and 8).

Notes and instructions are a person's words, but an agent's token can send them too, and an agent that read the wrong
page sends that page's. What comes word for word is found here; what was said in other words is not. Nothing here may
stop a candidate: a person may well have quoted a file on purpose.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from daemon.core import playbook
from daemon.core.records import Dialect, ToolResult
from daemon.store.learning import Learning
from daemon.wire.base import dialect as codec_of

#: Words in a row that nobody writes by chance.
_RUN: Final = 8
#: Records that are looked through for one run; the newest come first.
_RECORDS: Final = 100
_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://([^\s/?#]+)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]+")


def quoted(store: Learning, before: Mapping[str, str], after: Mapping[str, str | None]) -> str | None:
    """The first words, or host, that files gain and that a tool's result holds; None without any. Blocks."""
    said = {line for text in before.values() for line in _lines(text)}
    looked: dict[bytes, str] = {}
    for text in after.values():
        for line in _lines(text or ""):
            for run in _runs(line) if line not in said else ():
                if _is_tools(store, run, looked):
                    return " ".join(run)
    return None


def _runs(line: str) -> Iterator[list[str]]:
    """What would be telling if a tool had said it: every run of words, and the hosts of addresses."""
    words = _words(line)
    yield from (words[start : start + _RUN] for start in range(len(words) - _RUN + 1))
    yield from filter(None, (_words(host) for host in _HOST.findall(line)))


def _lines(text: str) -> Collection[str]:
    """Rules without their counters; other files by line."""
    try:
        return [rule.text for rule in playbook.parse(text)]
    except ValueError:
        return text.splitlines()


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_tools(store: Learning, run: list[str], looked: dict[bytes, str]) -> bool:
    wanted = f" {' '.join(run)} "
    for dialect, raw in store.added(run, _RECORDS):
        if raw not in looked:
            parts = codec_of(Dialect(dialect)).message(raw).parts
            results = (part.content for part in parts if isinstance(part, ToolResult))
            looked[raw] = "".join(f" {' '.join(_words(result))} " for result in results)
        if wanted in looked[raw]:
            return True
    return False
