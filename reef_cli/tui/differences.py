"""A unified diff, file by file. Pure.

Where a file begins is read by the hunks' own counts, never by looks alone: a removed line ``-- x`` looks like a head.
"""

import re
from dataclasses import dataclass
from typing import Final

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NOWHERE: Final = "/dev/null"


@dataclass(frozen=True, slots=True)
class FileDiff:
    """``lines`` are its hunks, or what stands for them; ``added`` and ``removed`` count lines."""

    name: str
    lines: tuple[str, ...]
    added: int
    removed: int


def by_file(text: str) -> list[FileDiff]:
    """What each file changes, in the diff's order."""
    found: list[FileDiff] = []
    heads: list[str] = []
    hunks: list[str] = []
    old = new = 0  # lines of the current hunk that are still to come

    def end() -> None:
        if heads:
            found.append(_file(heads, hunks))
        heads.clear()
        hunks.clear()

    for line in text.splitlines():
        if old > 0 or new > 0 or line.startswith("\\"):  # inside a hunk; or that a file has no newline at its end
            old -= line[:1] in ("-", " ", "")
            new -= line[:1] in ("+", " ", "")
            hunks.append(line)
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = (1 if count is None else int(count) for count in hunk.groups())
            hunks.append(line)
        else:
            if line.startswith("diff ") or (line.startswith("--- ") and (hunks or not heads)):
                end()
            heads.append(line)
    end()
    return found


def _file(heads: list[str], hunks: list[str]) -> FileDiff:
    added, removed = (sum(line.startswith(sign) for line in hunks) for sign in "+-")
    said = [line for line in heads if not line.startswith(("diff ", "index ", "--- ", "+++ "))]
    return FileDiff(_name(heads), (*said, *hunks), added, removed)


def _name(heads: list[str]) -> str:
    """As it is called afterwards; as before, where it is gone."""
    sides = [line.split("\t")[0] for line in heads]
    named = [line[4:] for sign in ("+++ ", "--- ") for line in sides if line.startswith(sign)]
    words = [name.removeprefix("b/").removeprefix("a/") for name in named if name != _NOWHERE]
    return words[0] if words else heads[0].rpartition(" ")[2].removeprefix("b/")
