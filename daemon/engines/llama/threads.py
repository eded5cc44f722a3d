"""How many threads decode: all cores, fewer while something else wants them.

llama.cpp's threads wait for each other many times a token, so one of them waiting for a core stops all: beside a
compiler two threads on two cores were slower than one (8 against 30 tokens/s). A step's processor time tells: threads
that never wait use all of its duration.
"""

from typing import Final

#: Seconds of decoding to judge by.
_WINDOW: Final = 0.25
#: Share of the time that the threads were running: below, one fewer; above, one more.
_CROWDED: Final = 0.85
_FREE: Final = 0.96
#: Seconds until another thread is tried, doubled each time it was too early.
_HOLD: Final = 2.0
_LONGEST_HOLD: Final = 60.0


class Threads:
    """Between 1 and ``most``; starts with all."""

    def __init__(self, most: int) -> None:
        self.count = most
        self.most = most
        self._wall = self._used = 0.0
        self._hold = _HOLD
        self._not_before = 0.0
        self._trying = False

    def note(self, wall: float, used: float, now: float) -> None:
        """Account for a step of ``wall`` seconds that took ``used`` of processor time."""
        self._wall += wall
        self._used += used
        if self._wall < _WINDOW:
            return
        share = self._used / (self._wall * self.count)
        self._wall = self._used = 0.0
        if share < _CROWDED and self.count > 1:
            self._hold = min(self._hold * 2, _LONGEST_HOLD) if self._trying else _HOLD
            self._not_before = now + self._hold
            self.count -= 1
            self._trying = False
            return
        self._trying = share > _FREE and self.count < self.most and now >= self._not_before
        if self._trying:
            self.count += 1
