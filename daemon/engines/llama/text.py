"""Bytes of tokens to text that may be sent: whole characters only, and nothing that could be part of a stop string."""

import codecs
from collections.abc import Sequence


class Characters:
    """UTF-8 across tokens: a character split over two tokens comes out with the second."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        return self._decoder.decode(data)

    def finish(self) -> str:
        return self._decoder.decode(b"", True)


class StopStrings:
    """Cuts the text before the first stop string, wherever token boundaries fall. ``hit`` is the one found."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.hit: str | None = None

    def feed(self, text: str) -> str:
        """What may be sent now."""
        if not self._stops:
            return text
        self._held += text
        found = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            at, self.hit = min(found, key=lambda pair: pair[0])
            free, self._held = self._held[:at], ""
            return free
        keep = max(overlap(self._held, stop) for stop in self._stops)
        free = self._held[: len(self._held) - keep]
        self._held = self._held[len(free) :]
        return free

    def finish(self) -> str:
        """What was held back, when the text ended without a stop string."""
        free, self._held = self._held, ""
        return free


def overlap(text: str, word: str) -> int:
    """Length of the longest end of ``text`` that begins ``word`` without being all of it."""
    for size in range(min(len(text), len(word) - 1), 0, -1):
        if text.endswith(word[:size]):
            return size
    return 0
