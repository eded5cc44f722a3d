"""Text for a grid of cells: inert, cut and padded by columns, wrapped. Pure functions.

Agents' text is untrusted: what passes through `inert` holds no control character, and only characters that every
terminal gives the width that we count. An emoji family joined by zero-width joiners is two columns here and six there:
so joiners, variation selectors and skin tones go, and the people stand side by side.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from reef_cli import output

_UNSURE: Final = {code: None for code in (0x200D, 0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400))}
_TAB: Final = "    "


def inert(text: str) -> str:
    """One line, without anything a terminal could act on or measure otherwise."""
    if text.isascii() and text.isprintable():
        return text
    return output.visible(text.translate(_UNSURE).replace("\t", _TAB), keep="")


def one_line(text: str, most: int = 500) -> str:
    """``text`` on one line, spaces folded, cut at ``most`` characters."""
    return inert(" ".join(text[: most * 2].split())[:most].rstrip())


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Exactly ``width`` cells, cut with an ellipsis. ``text`` is inert."""
    taken = len(text) if text.isascii() else cell_len(text)
    if taken > width:
        return set_cell_size(set_cell_size(text, max(width - 1, 0)).rstrip() + "…", width) if width else ""
    return " " * (width - taken) + text if right else text + " " * (width - taken)


def wrapped(text: str, width: int) -> list[str]:
    """Inert lines of at most ``width`` cells, broken at spaces where there are some."""
    width = max(width, 4)
    return [part for line in text.splitlines() or [""] for part in _broken(inert(line), width)]


def _broken(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    indent = " " * min(len(line) - len(line.lstrip(" ")), width // 2)
    lines, current = [], ""
    for word in line.strip(" ").split(" "):
        joined = f"{current} {word}" if current.strip() else indent + word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current.strip():
            lines.append(current)
        current = indent + word
        *whole, current = pieces(current, width)
        lines += whole
    return [*lines, current] if current or not lines else lines


def pieces(line: str, width: int) -> Iterator[str]:
    """``line`` cut every ``width`` cells, wherever that is: joined they are the same again. At least one."""
    if line.isascii():
        yield from (line[n : n + width] for n in range(0, max(len(line), 1), width))
        return
    start, taken = 0, 0
    for n, char in enumerate(line):
        cells = cell_len(char)
        if taken + cells > width and n > start:
            yield line[start:n]
            start, taken = n, 0
        taken += cells
    yield line[start:]


def moment(nanoseconds: int | None, now_ns: int) -> str:
    """Local time: the clock today, else the date; 8 columns."""
    if not nanoseconds:
        return "-"
    then, now = time.localtime(nanoseconds / 1e9), time.localtime(now_ns / 1e9)
    if then[:3] == now[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%d %b" if then[0] == now[0] else "%b %Y", then)


def number(count: int) -> str:
    """A count in at most five columns: 950, 12k, 3.4M."""
    if count < 10_000:
        return str(count)
    return f"{count // 1000}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"


def bar(done: int, total: int, width: int = 10) -> str:
    """How far something is, in characters that every terminal has."""
    if total <= 0:
        return ""
    full = min(width, done * width // total)
    return f"[{'#' * full}{'.' * (width - full)}] {min(100, done * 100 // total)} %"


def rating(score: float | None, metadata: Mapping[str, Any] | None = None) -> str:
    """A glyph and a word: colour alone says nothing. ``metadata`` may say on which scale it was given."""
    if score is not None and (given := output.scaled(metadata)):
        return given
    return "" if score is None else "+ good" if score == 1 else "- bad" if score == 0 else f"~ {score:g}"
