"""The text inside ``{"input": "…"}`` while that JSON still comes: a tool that takes free text shows it as it comes.

What is given out is a beginning of what the whole JSON says; what cannot be read yet waits.
"""

import json
import re
from typing import Final

_OPENING: Final = re.compile(r'\s*\{\s*"input"\s*:\s*"')
#: Characters and escapes that are whole; half of a surrogate pair is not.
_WHOLE: Final = re.compile(
    r'(?:[^"\\]|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*'
)


class FreeText:
    def __init__(self) -> None:
        self._waiting = ""
        self._inside = False
        self._over = False

    def feed(self, piece: str) -> str:
        """What a piece of the JSON adds to the text."""
        if self._over:
            return ""
        self._waiting += piece
        if not self._inside:
            opening = _OPENING.match(self._waiting)
            if opening is None:
                return ""
            self._inside, self._waiting = True, self._waiting[opening.end() :]
        whole = _WHOLE.match(self._waiting)
        written = whole[0] if whole else ""
        self._waiting = self._waiting[len(written) :]
        self._over = self._waiting.startswith('"')
        try:
            text: str = json.loads(f'"{written}"', strict=False)
        except ValueError:  # an escape that there is none of: the whole is read at its end
            self._over, text = True, ""
        return text
