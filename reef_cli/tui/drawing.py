"""Blocks as rows of a width. What is unfolded is bounded: a person reads a screen of it, `$PAGER` has it all.

Every line passes through `reef_cli.tui.text`: nothing in it acts on a terminal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reef_cli.blocks import Block
from reef_cli.tui.code import Code, Lazy
from reef_cli.tui.text import inert, pieces, wrapped
from reef_cli.tui.window import Span

#: Characters and lines of one item that are drawn.
MOST: Final = 60_000
_LINES: Final = 2000
_SIGNS: Final = (
    ("+++", "bold"), ("---", "bold"), ("***", "bold"), ("diff ", "bold"), ("+", "added"), ("-", "removed"),
    ("@@", "hunk"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line of a row, and its looks."""

    text: str
    style: str = ""
    spans: Sequence[Span] = ()


def drawn(blocks: Sequence[Block], width: int, *, indent: int = 2, style: str = "") -> Iterator[Drawn]:
    """The blocks one below the other, as far as they are shown; the last line says what is not."""
    chars, lines, total = 0, 0, sum(len(block.text) for block in blocks)
    for block in blocks:
        text = block.text[: MOST - chars]
        for line in _block(Block(text, block.kind, block.language), width - indent, indent, style):
            lines += 1
            if lines > _LINES:
                break
            yield line
        chars += len(text)
        if lines > _LINES or len(text) < len(block.text):
            yield Drawn(f"{' ' * indent}… cut here; all {total} characters: p, or e", "dim")
            return


def _block(block: Block, width: int, indent: int, style: str) -> Iterator[Drawn]:
    space = " " * indent
    if block.kind == "text":
        yield from (Drawn(space + line, style) for line in wrapped(block.text, width))
        return
    lines = [inert(line) for line in block.text.splitlines()]
    code = Code(lines, block.language) if block.kind == "code" else None
    for n, line in enumerate(lines):
        start, look = 0, style if code else _sign(line)
        for piece in pieces(line, max(width, 4)):
            spans = Lazy(code, n, start, start + len(piece), indent=indent) if code else ()
            yield Drawn(space + piece, look, spans)
            start += len(piece)


def _sign(line: str) -> str:
    return next((style for sign, style in _SIGNS if line.startswith(sign)), "dim")
