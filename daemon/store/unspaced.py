"""Chinese and Japanese in the full-text index, which knows words by the blanks between them: two letters are a word.

Any part of a run is found: its pairs must all be there, and the text itself tells whether they follow each other. Text
of other scripts goes by untouched. A change here needs the index made anew: what is taken out of it must be what was
put in.
"""

import re
from typing import Final

_RUN: Final = re.compile("[々〆ぁ-ゖゝ-ゟァ-ヺー-ヿㇰ-ㇿ㐀-䶿一-鿿豈-\ufaffｦ-ﾟ\U00020000-\U0003ffff]+")
#: A quick look first, at a tenth of what indexing costs: letters of these scripts lie in few places.
_ANY: Final = re.compile("[^\x00-\u3004\ufb00-\uff65\U00010000-\U0001ffff]")


def spread(text: str) -> str:
    """The text as it is indexed: every letter of a run begins a pair, the last one stands alone."""
    if text.isascii() or not _ANY.search(text):
        return text
    return _RUN.sub(lambda found: f" {' '.join(_pairs(found[0]))} ", text)


def is_unspaced(word: str) -> bool:
    """Whether any of it is found by pairs."""
    return not word.isascii() and _RUN.search(word) is not None


def is_pieced(word: str) -> bool:
    """Whether it is found by several words of the index, which may stand apart in a text."""
    return is_unspaced(word) and sought(word).startswith("(")


def sought(word: str) -> str:
    """FTS5's words for one of a query, each quoted: it reads nothing in them as its own. ``wor*`` is a beginning."""
    if not is_unspaced(word):
        return f'"{word[:-1]}" *' if word.endswith("*") else f'"{word}"'
    parts: list[str] = []
    for run in _RUN.sub(lambda found: f" {found[0]} ", word.rstrip("*")).split():
        if not is_unspaced(run):
            parts.append(f'"{run}"')
        elif len(run) == 1:
            parts.append(f'"{run}" *')
        else:
            parts += [f'"{pair}"' for pair in _pairs(run)[:-1]]
    return parts[0] if len(parts) == 1 else f"({' AND '.join(dict.fromkeys(parts))})"


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run))]
