"""Silence noticed: something is done whenever nothing was felt for so many seconds.

One timer a response, not one a chunk: `felt` only notes the time.
"""

import asyncio
from collections.abc import Callable, Coroutine


class Pulse:
    """Beats after each silence of ``seconds`` until it is stopped."""

    def __init__(self, seconds: float, beat: Callable[[], Coroutine[object, object, None]]) -> None:
        self._seconds = seconds
        self._beat = beat
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._due)
        self._beating: asyncio.Task[None] | None = None

    def felt(self) -> None:
        """Something was said: silence begins anew."""
        self._last = self._loop.time()

    def stop(self) -> None:
        self._timer.cancel()
        if self._beating is not None:
            self._beating.cancel()

    def _due(self) -> None:
        left = self._last + self._seconds - self._loop.time()
        if left <= 0:
            self._beating = self._loop.create_task(self._beat())
            self.felt()
            left = self._seconds
        self._timer = self._loop.call_later(left, self._due)
