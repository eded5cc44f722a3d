"""A watch on a worker that is alive and does nothing: stopped by a signal, swapped out for good, hung in native code.

Missed beats are counted, not seconds: when this process slept itself, no worker is to blame.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Patience:
    """A sign of life comes every ``beat`` seconds once it runs; ``missed`` in a row, or one thing that takes
    ``step`` seconds, is the end. A batch of a large model takes half a minute on a slow processor.
    """

    beat: float = 5.0
    missed: int = 3
    step: float = 120.0


PATIENCE: Final = Patience()


class Watch:
    """Calls ``stuck`` once, with the reason, and ends."""

    def __init__(self, patience: Patience, stuck: Callable[[str], None]) -> None:
        self._patience = patience
        self._stuck = stuck
        self._missed = 0
        self._task: asyncio.Task[None] | None = None

    def start(self, busy: Callable[[], bool]) -> None:
        """``busy``: whether signs of life are due."""
        self._task = asyncio.create_task(self._run(busy))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def heard(self, step: float) -> None:
        """A sign of life; ``step``: seconds that the longest thing it does has taken so far."""
        self._missed = 0
        if step > self._patience.step:
            self.stop()
            self._stuck(f"the engine's process hung for {step:.0f} s in one step and was ended")

    async def _run(self, busy: Callable[[], bool]) -> None:
        patience = self._patience
        while self._missed < patience.missed:
            await asyncio.sleep(patience.beat)
            self._missed = self._missed + 1 if busy() else 0
        self._stuck(f"the engine's process gave no sign of life for {self._missed * patience.beat:.0f} s and was ended")
