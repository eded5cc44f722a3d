"""A body as it went over the wire, as lines: JSON indented and in colours, other text as it is.

It is made line by line as it is asked for, so that ten megabytes open at once; nothing is parsed as a whole.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rich.cells import cell_len

from reef_cli.tui.drawing import Drawn
from reef_cli.tui.text import inert, pieces
from reef_cli.tui.window import Span

#: Possessive: a string of megabytes leaves nothing to go back to.
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},:]|[^\s\[\]{},:"]+', re.S)
_INDENT: Final = 2
_DEEPEST: Final = 12


class _Part(NamedTuple):
    text: str
    role: str = ""


def rows(text: str, width: int) -> Iterator[Drawn]:
    """The text as lines of at most ``width`` columns. ``text`` is inert but for its line ends and tabs."""
    is_json = text.lstrip()[:1] in ("{", "[")
    found = _indented(text) if is_json else ((0, list(_inline(line))) for line in text.split("\n"))
    for indent, parts in found:
        yield from _row(indent, parts, width)


def _row(indent: int, parts: list[_Part], width: int) -> Iterator[Drawn]:
    space = " " * indent
    line = "".join(part.text for part in parts)
    room = max(width - indent, 8)
    if len(parts) == 1:  # it may be megabytes
        for piece in pieces(line, room):
            yield Drawn(space + piece, parts[0].role)
        return
    start = 0
    for piece in pieces(line, room):
        yield Drawn(space + piece, "", tuple(_spans(parts, start, start + len(piece), indent)))
        start += len(piece)


def _spans(parts: list[_Part], start: int, end: int, indent: int) -> Iterator[Span]:
    at, column = 0, indent
    for part in parts:
        first, last = max(at, start), min(at + len(part.text), end)
        if first < last:
            wide = cell_len(part.text[first - at : last - at])
            if part.role:
                yield Span(column, column + wide, part.role)
            column += wide
        at += len(part.text)


def _indented(text: str) -> Iterator[tuple[int, list[_Part]]]:
    """Lines of JSON: (indent, parts); text that is none comes out too, only less well cut."""
    depth = 0
    line: list[_Part] = []
    opened = False  # nothing stands in the bracket yet
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "}]":
            depth = max(depth - 1, 0)
            if not opened and line:
                yield _at(depth + 1), line
                line = []
            line.append(_Part(token))
        else:
            if opened:
                yield _at(depth - 1), line
                line = []
            if token == ",":
                yield _at(depth), [*line, _Part(",")]
                line = []
            elif token == ":":
                if line:
                    line[-1] = _Part(line[-1].text, "name")
                line.append(_Part(": "))
            else:
                line.append(_Part(inert(token), _role(token)))
        opened = token in "{["
        depth += opened
    if line:
        yield _at(depth), line


def _at(depth: int) -> int:
    return _INDENT * min(depth, _DEEPEST)


def _inline(line: str) -> Iterator[_Part]:
    """A line as it is: of an event of a stream, for one."""
    at = 0
    for match in _TOKEN.finditer(line) if line.startswith("data:") else ():
        if match.start() > at:
            yield _Part(inert(line[at : match.start()]))
        yield _Part(inert(match[0]), _role(match[0]))
        at = match.end()
    yield _Part(inert(line[at:]))


def _role(token: str) -> str:
    if token[0] == '"':
        return "string"
    return "number" if token[0] in "-0123456789" else "keyword" if token in ("true", "false", "null") else ""
