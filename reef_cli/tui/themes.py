"""What words such as ``good`` or ``removed`` look like in each theme: no screen names a colour.

A style is words: roles of this table, and rich's attributes (``bold dim italic reverse underline``). Colour never says
anything alone: each role stands beside a glyph or a word. Nothing here imports Textual.
"""

from functools import cache
from typing import Final, Literal, get_args

from rich.style import Style

Theme = Literal["dark", "light", "ansi", "safe"]
THEMES: Final[tuple[Theme, ...]] = get_args(Theme)
ATTRIBUTES: Final = frozenset(("bold", "dim", "italic", "reverse", "underline"))

#: Eight colours that people with any common colour vision tell apart: Okabe & Ito, "Color Universal Design" (2008),
#: https://jfly.uni-koeln.de/color/
_ORANGE, _SKY, _GREEN, _YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
_VERMILION, _PURPLE = "#D55E00", "#CC79A7"

#: Role → its look in dark, light, ansi (the terminal's sixteen colours) and safe (blue and orange, not green and red).
_TABLE: Final[dict[str, tuple[str, str, str, str]]] = {
    # what was said about an answer
    "good": ("#4EBF71", "#17642E", "green", _SKY),
    "bad": ("#EF7585", "#A3152F", "red", _ORANGE),
    # how things are
    "error": ("#FF7A7A", "#A3152F", "red", _VERMILION),
    "warning": ("#FFA62B", "#7A4A00", "yellow", _YELLOW),
    "live": ("bold #7FC1F5", "bold #0B5394", "bold", f"bold {_SKY}"),
    # diffs
    "added": ("#4EBF71", "#17642E", "green", _SKY),
    "removed": ("#EF7585", "#A3152F", "red", _ORANGE),
    "hunk": ("#62C3CF", "#0B5A66", "cyan", _PURPLE),
    # a conversation
    "tool": ("#62C3CF", "#0B5A66", "cyan", _PURPLE),
    "hit": ("bold underline #FFD75F", "bold underline #7A4A00", "bold underline yellow", f"bold underline {_YELLOW}"),
    # code
    "keyword": ("#D08BE8", "#7A1FA2", "magenta", _PURPLE),
    "string": ("#9CCB7F", "#2E6412", "green", _GREEN),
    "number": ("#E5A46C", "#7A4A00", "cyan", _YELLOW),
    "name": ("#7FC1F5", "#0B5394", "cyan", _SKY),
    "comment": ("italic #9E9E9E", "italic #4F4F4F", "dim italic", "italic #A6A6A6"),
}
ROLES: Final = frozenset(_TABLE)


@cache
def style(theme: str, words: str) -> Style:
    """The look of ``words`` in that theme; in one that is none of ours, as in ansi. Raises KeyError for any other
    word: a colour's name, above all."""
    place = ("dark", "light", "ansi", "safe").index(theme) if theme in THEMES else 2
    parts = [word if word in ATTRIBUTES else _TABLE[word][place] for word in words.split()]
    return Style.parse(" ".join(parts)) if parts else Style.null()
