"""What may become a rule, which rules say the same, and which ones go: pure decisions on a playbook's rules.

Only a person's own words come in here (notes and instructions). Nothing that a tool, a file or a web page said is ever
made a rule, since nothing of an exchange is read but its marks (SECURITY 7 and 8).
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from daemon.core.plaintext import invisible
from daemon.core.playbook import Rule, told

#: A difference in one of these words is a difference in meaning, however alike the rest is.
_TURNS: Final = frozenset(
    [
        "not", "no", "never", "none", "dont", "doesnt", "wont", "cant", "cannot", "shouldnt", "mustnt", "without",
        "avoid", "except", "unless", "only", "instead",
    ]
)  # fmt: skip
_WORD: Final = re.compile(r"\w+(?:[-./+#]\w+)*[+#]*")
#: Bytes of English text to a token, about; a budget needs no more.
_BYTES_A_TOKEN: Final = 4


class NoRule(Exception):
    """A text that cannot be a rule; the message says why, for the person who wrote it."""


def cleaned(text: str, longest: int) -> str:
    """The text as one line. Raises NoRule."""
    line = " ".join(text.split())
    if not any(char.isalnum() for char in line):
        raise NoRule("it says nothing")
    if (hidden := invisible(line)) is not None:
        raise NoRule(f"it holds a character that nobody sees, {hidden}: type it again without")
    if len(line) > longest:
        raise NoRule(f"it has {len(line)} characters, a rule has at most {longest}: say it shorter")
    return line


def words(text: str) -> list[str]:
    """In lower case, without punctuation, apostrophes and plural s."""
    found = _WORD.findall(text.casefold().replace("'", "").replace("\u2019", ""))
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found]


def same(one: str, other: str, similarity: float) -> bool:
    """Whether two texts are one rule: equal words, or nearly.

    Nearly: the one has all words of the other in their order and a few more (|common| / |all| >= ``similarity``, as
    sets and as sequences), none of them a number or a word that turns the meaning. An exchanged word ("the api folder",
    "the web folder") always makes another rule. One rule too many costs a few tokens; one swallowed is a person not
    heard.
    """
    first, second = words(one), words(other)
    if first == second:
        return bool(first) or one == other
    more, fewer = set(first) - set(second), set(second) - set(first)
    if (more and fewer) or any(word in _TURNS or any(map(str.isdecimal, word)) for word in more | fewer):
        return False
    common, all_ = set(first) & set(second), set(first) | set(second)
    in_order = SequenceMatcher(None, first, second, autojunk=False).ratio()
    return len(common) >= similarity * len(all_) and in_order >= similarity


def harmful(rules: Sequence[Rule], margin: int) -> list[Rule]:
    """Those whose bad marks exceed the good ones by ``margin`` at least."""
    return [rule for rule in rules if rule.harmful - rule.helpful >= margin]


def tokens(rules: Sequence[Rule]) -> int:
    """What telling them costs a request, about."""
    return -(-len(told(rules).encode()) // _BYTES_A_TOKEN)


def surplus(rules: Sequence[Rule], most: int, most_tokens: int) -> list[Rule]:
    """The rules that do not fit: the least helpful first, among equals the oldest; never the newest one."""
    kept, gone = list(rules), []
    while len(kept) > 1 and (len(kept) > most or tokens(kept) > most_tokens):
        least = min(kept[:-1], key=lambda rule: (rule.helpful - rule.harmful, rule.id))
        kept.remove(least)
        gone.append(least)
    return gone
