"""What a message is made of for a reader: prose, code in some language, a diff. Pure; the text in it is as it came.

The terminal's commands and the dashboard draw the same blocks.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

#: Lines on one side of a diff; beyond, what was is shown whole, then what is.
_COMPARED: Final = 1000
_CONTEXT: Final = 3
_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+) *([\w+#.-]*)[^`]*$")
_HUNK: Final = re.compile(r"^@@ .*@@", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """``language`` is a name that pygments knows, or a file's name; only of code."""

    text: str
    kind: Literal["text", "code", "diff"] = "text"
    language: str = ""


def prose(text: str) -> list[Block]:
    """Text with what is fenced in it as code; the fences stay, as text."""
    if "```" not in text and "~~~" not in text:
        return [Block(text)]
    blocks: list[Block] = []
    lines: list[str] = []
    fence, language = "", ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence and found:
            lines.append(line)
            blocks.append(Block("\n".join(lines)))
            fence, language, lines = found[1], found[2], []
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            blocks.append(_code(lines, language))
            fence, lines = "", [line]
        else:
            lines.append(line)
    if lines:
        blocks.append(_code(lines, language) if fence else Block("\n".join(lines)))
    return [block for block in blocks if block.text]


def _code(lines: Sequence[str], language: str) -> Block:
    if language in ("diff", "patch"):
        return Block("\n".join(lines), "diff")
    return Block("\n".join(lines), "code", language)


def output(text: str, language: str = "") -> list[Block]:
    """What a tool gave back: a diff where it is one, code where it is a file's."""
    if _HUNK.search(text) and ("\n+++ " in text or text.startswith("diff ") or "\n--- " in f"\n{text}"):
        return [Block(text, "diff")]
    return [Block(text, "code", language)] if language else [Block(text)]


def difference(was: str, now: str) -> Block:
    """Both texts as one diff without file names."""
    return Block("\n".join(_lines(was.splitlines(), now.splitlines())), "diff")


def _lines(was: list[str], now: list[str]) -> Iterator[str]:
    if max(len(was), len(now)) > _COMPARED or not was or not now:
        yield from (f"-{line}" for line in was)
        yield from (f"+{line}" for line in now)
        return
    unified = difflib.unified_diff(was, now, lineterm="", n=_CONTEXT)
    yield from (line for n, line in enumerate(unified) if n > 2)  # not the file names, nor the first place
