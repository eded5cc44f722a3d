"""One line of text out of many: session titles and previews. Pure, linear in what it is given."""

import unicodedata
from collections.abc import Sequence
from typing import Final

from daemon.core.records import StoredMessage
from daemon.store import inband, person

TITLE: Final = 80
PREVIEW: Final = 160
#: How much of a text is looked at to fill a line: this many times its length, white space folded or not.
_LOOK: Final = 16
_LOOK_FOLDED: Final = 2


def one_line(text: str, limit: int = PREVIEW) -> str:
    """The first ``limit`` characters without line breaks, control or direction-changing characters, ``…`` where cut."""
    folded = " ".join(text[: limit * _LOOK_FOLDED].split())
    if len(folded) > limit and folded.isprintable():  # as nearly all are
        return folded[: limit - 1].rstrip() + "…"
    folded = " ".join(text[: limit * _LOOK].split())
    words = " ".join(_visible(folded[: limit * _LOOK_FOLDED]).split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def title(text: str) -> str:
    """A session's title: what the person wrote to the agent, without what that put around it; empty where they wrote
    nothing."""
    return "" if inband.read(text) else one_line(person.written(text), TITLE)


def of(messages: Sequence[StoredMessage]) -> str:
    """What the person asked last when a session began: some agents put examples or their surroundings before it."""
    for message in reversed(messages):
        if message.role == "user" and (line := title(message.text)):
            return line
    return ""


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
