"""One line of text out of many: session titles and previews. Pure, linear in what it is given."""

import unicodedata
from typing import Final

TITLE: Final = 80
PREVIEW: Final = 160
_OPEN: Final = "<system-reminder>"
_CLOSE: Final = "</system-reminder>"
#: How much of a text is looked at to fill a line: this many times its length, white space folded or not.
_LOOK: Final = 16
_LOOK_FOLDED: Final = 2


def one_line(text: str, limit: int = PREVIEW) -> str:
    """The first ``limit`` characters without line breaks, control or direction-changing characters, ``…`` where cut."""
    folded = " ".join(text[: limit * _LOOK].split())
    words = " ".join(_visible(folded[: limit * _LOOK_FOLDED]).split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def title(text: str) -> str:
    """A session's title: what the person wrote, without the reminders that agents put around it."""
    return one_line(_without_reminders(text), TITLE)


def _without_reminders(text: str) -> str:
    kept: list[str] = []
    position = 0
    while (begin := text.find(_OPEN, position)) >= 0:
        kept.append(text[position:begin])
        end = text.find(_CLOSE, begin)
        if end < 0:
            return "".join(kept)
        position = end + len(_CLOSE)
    kept.append(text[position:])
    return "".join(kept)


def _visible(text: str) -> str:
    """Controls become spaces; invisible formatting (bidi overrides, tags) and lone surrogates vanish; joiners of emoji
    stay."""
    if text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category in ("Cf", "Cs", "Co", "Cn") and char != "\u200d" else char
