"""The named forms that an answer can be asked to have: what ``reef tasks add --form`` takes.

Pure and quick: text in, yes or no out, no expression of a person's. A form judges a whole answer, so one that was cut
off has none. Tasks are kept by these names: one that has shipped is never given another meaning.
"""

import difflib
import json
import re
from collections.abc import Callable
from typing import Final

from daemon.core.errors import UsageError

Form = Callable[[str], bool]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Where a sentence may end: marks (East Asian ones too), then quotes and brackets that close behind them.
_WIDE: Final = "\u3002\uff01\uff1f"
_CLOSING: Final = "\"'\u201d\u2019\u00bb)]*_`"
_OPENING: Final = "\"'\u201c\u2018\u00ab([*_`"
_END: Final = re.compile(f"[.!?\u2026{_WIDE}]+[{re.escape(_CLOSING)}]*")
#: Words whose full stop ends no sentence, whatever follows; before a number; and those where the next word decides.
_TITLES: Final = _words("dr mr mrs ms mx prof gen col capt lt sgt rev hon vs")
_NUMBERING: Final = _words("no nos fig figs eq vol ch pp sec")
_ABBREVIATIONS: Final = _words(
    "e.g i.e etc al cf approx ca resp inc ltd co corp dept est ft st sr jr a.m p.m u.s u.k u.n e.u b.c a.d ph.d "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
_OPENERS: Final = _words(
    "a an and as at but for he her his how however i if in it its my no on she so some that the their then there "
    "these they this those to we what when why with yes you your"
)
_LETTERS: Final = re.compile(r"(?:\w\.)*\w")
_FENCE: Final = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.S)
_BULLET: Final = re.compile(r"\s*[-*•] +\S")
_NUMBERED: Final = re.compile(r"\s*(\d+)[.)] +\S")
_LEAST_ITEMS: Final = 2


def passes(name: str, text: str, *, ended: bool = True) -> bool:
    """Whether ``text`` has the form. ``ended``: the model stopped by itself. Raises UsageError for an unknown form."""
    return form(name)(text.strip()) and ended


def form(name: str) -> Form:
    """The form called ``name``, for text without blanks around it. Raises UsageError naming the nearest one."""
    word, _, number = name.partition(":")
    if word == "max_words":
        if not (number.isascii() and number.isdecimal() and len(number) < 9 and int(number) > 0):
            raise UsageError(f"the form {name!r} needs a number of words", hint="for example max_words:20")
        most = int(number)
        return lambda text: 0 < len(text.split()) <= most
    if name not in FORMS:
        near = difflib.get_close_matches(word, names(), n=1, cutoff=0.4)
        known = f"forms: {', '.join(names())}"
        raise UsageError(f"no form is called {name!r}", hint=f"did you mean {near[0]!r}? {known}" if near else known)
    return FORMS[name]


def names() -> tuple[str, ...]:
    return (*FORMS, "max_words:N")


def _one_sentence(text: str) -> bool:
    """Ends with its mark, and has no other end inside; a line break is one."""
    if not text or "\n" in text:
        return False
    ends = [found for found in _END.finditer(text) if _is_end(text, found)]
    return len(ends) == 1 and ends[0].end() == len(text) and any(letter.isalnum() for letter in text)


def _is_end(text: str, mark: re.Match[str]) -> bool:
    """Whether a sentence ends at ``mark``: not inside a number or a name, after an abbreviation, before lower case."""
    if mark.end() == len(text) or mark[0][0] in _WIDE:
        return True
    if not text[mark.end()].isspace():
        return False
    following = text[mark.end() :].lstrip().lstrip(_OPENING)
    if not following or following[0].islower():
        return False
    if mark[0][0] != "." or mark[0].startswith(".."):
        return True
    words = text[: mark.start()].split()
    before = words[-1].lstrip(_OPENING).lower() if words else ""
    if before in _TITLES or (before in _NUMBERING and following[0].isdecimal()):
        return False
    short = before in _ABBREVIATIONS or (_LETTERS.fullmatch(before) is not None and not before.isdecimal())
    next_word = re.split(r"[^\w]", following, maxsplit=1)[0].lower()
    # "George W. Bush" goes on, "vitamin C. It helps" does not.
    return next_word in _OPENERS if short else True


def _json(text: str) -> bool:
    """One JSON object or array, bare or in one fenced block; NaN and Infinity are none."""
    fenced = _FENCE.fullmatch(text)
    try:
        value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _refuse(word: str) -> None:
    raise ValueError(word)


def _one_code_block(text: str) -> bool:
    """One fenced block that is not empty, and nothing around it."""
    return text.count("```") == 2 and (block := _FENCE.fullmatch(text)) is not None and bool(block[1].strip())


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _bullet_list(text: str) -> bool:
    """Two items at least, and no line that is none."""
    lines = _lines(text)
    return len(lines) >= _LEAST_ITEMS and all(_BULLET.match(line) for line in lines)


def _numbered_list(text: str) -> bool:
    """Two items at least, numbered 1, 2, 3, and no line that is none."""
    found = [_NUMBERED.match(line) for line in _lines(text)]
    counted = [int(item[1][:9]) for item in found if item is not None]
    return len(found) >= _LEAST_ITEMS and counted == list(range(1, len(found) + 1))


FORMS: Final[dict[str, Form]] = {
    "one_sentence": _one_sentence,
    "json": _json,
    "one_code_block": _one_code_block,
    "bullet_list": _bullet_list,
    "numbered_list": _numbered_list,
    "upper_case": str.isupper,
}
