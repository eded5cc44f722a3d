"""Redaction of a text that is still being written: what may yet become part of a secret waits.

Secrets are told by what stands before them and, but for private keys, have no blank in them. So what ends with a blank
cannot become one any more, and what was let go reads the same once the text is whole.
"""

import re
from collections.abc import Callable
from typing import Final

#: How far back a secret's name may stand, a header's cookies included.
_CONTEXT: Final = 1 << 15
_BLANKS: Final = " \n\t\r"
_KEY: Final = "-----BEGIN "
_KEY_SO_FAR: Final = re.compile(r"[A-Za-z0-9+/=\s:,.\\-]*")
_KEY_ENDS: Final = re.compile(r"-----END [A-Z0-9 ]{0,48}-----")
#: Behind one of these a value may begin, with letters of any alphabet in it.
_ASSIGNED: Final = (":", "=", ">")


class Held:
    """One text. ``redact`` is `daemon.core.redact.Redactor.redact`."""

    def __init__(self, redact: Callable[[bytes], tuple[bytes, int]]) -> None:
        self._redact = redact
        self._before = ""
        self._text = ""

    @property
    def waiting(self) -> int:
        """Characters that were not let go yet."""
        return len(self._text)

    def feed(self, text: str) -> str:
        """What can be shown now, redacted."""
        self._text += text
        return self._let_go(_settled(self._before, self._text))

    def finish(self) -> str:
        """The rest: the text is whole."""
        return self._let_go(len(self._text))

    def _let_go(self, count: int) -> str:
        if not count:
            return ""
        now, self._text = self._text[:count], self._text[count:]
        known = len(self._clean(self._before))
        clean = self._clean(self._before + now)
        self._before = (self._before + now)[-_CONTEXT:]
        return clean[known:]

    def _clean(self, text: str) -> str:
        return self._redact(text.encode("utf-8", "replace"))[0].decode("utf-8", "replace")


def _settled(before: str, text: str) -> int:
    """How much of ``text`` is no part of a secret that goes on."""
    settled = _behind_blank(text)
    while (key := text.rfind(_KEY, 0, settled)) >= 0:
        if not _KEY_SO_FAR.fullmatch(text, key, settled) or _KEY_ENDS.search(text, key, settled):
            break
        text = text[:key]  # it goes on; what is before it may be another
        settled = _behind_blank(text)
    return settled + _unspaced(before + text[:settled], text[settled:])


def _behind_blank(text: str) -> int:
    return max(text.rfind(blank) for blank in _BLANKS) + 1


def _unspaced(before: str, run: str) -> int:
    """How much can go of what has no blank in it: up to the last letter of an alphabet without blanks between words,
    where no password can have begun."""
    if run.isascii() or any(sign in run for sign in _ASSIGNED) or before.rstrip(" \n\t\r\"'\\").endswith(_ASSIGNED):
        return 0
    return next(at for at in range(len(run), 0, -1) if not run[at - 1].isascii())
