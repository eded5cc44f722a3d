"""Text that is what it looks like: invisible characters found, lines cut to a width.

Rules come from people and go to agents; cards go to terminals. A character that nobody sees can tell an agent what the
person never wrote, so whatever is added to a harness passes `invisible` first (SECURITY 7).
"""

import unicodedata
from typing import Final

#: Format characters that emoji and several scripts need, between characters of theirs.
_JOINERS: Final = "\u200c\u200d"
#: Behind a character it chooses the coloured picture; other variation selectors could carry data.
_EMOJI_STYLE: Final = "\ufe0f"
#: Blank or without effect, but letters, marks or symbols by category.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def invisible(text: str, keep: str = "") -> str | None:
    """The first character that a person would not see, as ``U+202E RIGHT-TO-LEFT OVERRIDE``; None without any.

    ``keep``: controls that are allowed, such as a newline.
    """
    place = hidden(text, keep)
    return None if place is None else f"U+{ord(text[place]):04X} {unicodedata.name(text[place], 'CONTROL')}"


def hidden(text: str, keep: str = "") -> int | None:
    """Where that character stands."""
    return next((n for n, char in enumerate(text) if char not in keep and _is_hidden(text, n)), None)


def _is_hidden(text: str, place: int) -> bool:
    char = text[place]
    if char.isascii():
        return not char.isprintable()
    before, after = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    if char in _JOINERS:  # inside Latin text they only hide
        return not (before and after) or before.isascii() or after.isascii()
    if char == _EMOJI_STYLE:
        return not before or before in _EMOJI_STYLE + _JOINERS
    return _selects(char) or char in _BLANK or unicodedata.category(char) in _HIDDEN


def _selects(char: str) -> bool:
    """A variation selector."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def marked(text: str, keep: str = "") -> str:
    """``text`` with every such character written out: ``⟨U+202E⟩``."""
    return "".join(
        f"⟨U+{ord(char):04X}⟩" if char not in keep and _is_hidden(text, n) else char for n, char in enumerate(text)
    )


def width(text: str) -> int:
    """Terminal columns: East Asian wide characters take two, combining marks and joiners none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) or char in _JOINERS else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def one_line(text: str, columns: int) -> str:
    """``text`` on one line of at most ``columns``, cut with an ellipsis; what a terminal could act on becomes ``?``."""
    flat = "".join(char if char.isprintable() or char in _JOINERS else "?" for char in " ".join(text.split()))
    if width(flat) <= columns:
        return flat
    while width(flat) > columns - 1:
        flat = flat[: min(len(flat) - 1, columns - 1)]
    return flat.rstrip() + "…"
