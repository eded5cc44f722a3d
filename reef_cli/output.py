"""The only writer of stdout: the answer, and nothing else.

A terminal changes decoration (bold, dim), never content. Text that came from a model, a file or a web page is made
inert before it is shown: no control character, escape sequence or bidirectional override reaches the terminal.
"""

import json as _json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Joiners that emoji and several scripts need; they are format characters, but change nothing outside their cluster.
_JOINERS = "\u200c\u200d"
#: Columns of the narrowest terminal that is reckoned with, and what the last column of a table keeps all the same.
WIDE = 80
_LEAST = 16


class ReaderLeft(Exception):
    """Who read stdout is gone (``reef logs | head``). Not an OSError: Typer would make exit code 1 of that."""


def visible(text: str, keep: str = "\n\t") -> str:
    """``text`` with everything a terminal could act on spelled out (``\\x1b``, ``\\u202e``), ``keep`` excepted."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep or char in _JOINERS else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    code = ord(char)
    if char.isspace() and code > 0x7F and char not in "\x85\u2028\u2029":
        return " "  # no-break and typographic spaces
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, width: int = 72) -> str:
    """The text on one line, cut with an ellipsis; the same whether or not a person watches."""
    flat = visible(" ".join(text.split()), keep="")
    return flat if len(flat) <= width else flat[: width - 1].rstrip() + "…"


def decorated() -> bool:
    """Whether stdout takes bold and dim."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if decorated() else text


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if decorated() else text


def line(text: str = "") -> None:
    """One line. The caller has passed foreign text through `visible`; decoration is the caller's own."""
    raw(text + "\n")


def raw(text: str) -> None:
    """Text as it is, shown at once: an answer that streams. Raises ReaderLeft."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding, "replace"))
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderLeft from error


def json(value: object) -> None:
    """One JSON document, in ASCII: what it quotes cannot act on a terminal."""
    line(_json.dumps(value, indent=2))


def jsonl(value: object) -> None:
    """One JSON document on one line."""
    line(_json.dumps(value, separators=(",", ":")))


def told(value: object, text: str, as_json: bool) -> None:
    """The answer as JSON, or in one line that the caller has passed through `visible` where it is foreign."""
    if as_json:
        json(value)
    else:
        line(text)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def scaled(metadata: Mapping[str, Any] | None) -> str:
    """``4 of 5``: how a score was given where neither good nor bad was meant; empty where it does not say."""
    told = metadata or {}
    scored, scale = told.get("scored"), told.get("scale")
    if isinstance(scored, int) and isinstance(scale, list) and len(scale) == 2 and isinstance(scale[1], int):
        return f"{scored} of {scale[1]}"
    return ""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Aligned columns under a heading; numbers to the right. Cells are made inert here; the last one is cut where the
    line would be wider than `WIDE`.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    before = sum(max(_width(row[i]) for row in [list(columns), *cells]) + 2 for i in range(len(columns) - 1))
    cells = [[*row[:-1], _cut(row[-1], max(WIDE - before, _LEAST))] for row in cells]
    widths = [max(_width(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]
    right = [bool(cells) and all(row[i].replace(".", "", 1).isdigit() for row in cells) for i in range(len(columns))]
    line(bold(_aligned(columns, widths, right)))
    for row in cells:
        line(_aligned(row, widths, right))


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for text, width, flush in zip(row, widths, right, strict=True):
        space = " " * (width - _width(text))
        padded.append(space + text if flush else text + space)
    return "  ".join(padded).rstrip()


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) > width - 1:
        text = text[: min(len(text) - 1, width - 1)]
    return text.rstrip() + "…"


def _cell(value: Any) -> str:
    return "-" if value is None or value == "" else visible(str(value), keep="")


def _width(text: str) -> int:
    """Terminal columns: East Asian wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    from daemon.core.plaintext import width  # not at import: few texts need its tables

    return width(text)


def size(count: float) -> str:
    """Bytes as a person reads them, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit in ("bytes", "kB") else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def duration(seconds: float) -> str:
    """A span as a person reads it: ``0.8 s``, ``42 s``, ``3 min``, ``2 h 5 min``, ``4 d``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 60:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{days} d"


def dollars(value: float | None) -> str:
    """US dollars as a person reads them: ``$12.30``, ``$0.0123``, ``$0``, nothing where it is unknown."""
    if value is None:
        return ""
    if 0 < value < 0.0001:
        return "<$0.0001"
    return "$0" if value == 0 else f"${value:.4f}" if value < 0.1 else f"${value:.2f}"


def clock(nanoseconds: int) -> str:
    """A moment in local time; the date only when it is not today."""
    import time

    moment = time.localtime(nanoseconds / 1e9)
    today = time.localtime()[:3] == moment[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", moment)


def utc(nanoseconds: int) -> str:
    """A moment in UTC, to the minute."""
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(nanoseconds / 1e9))
