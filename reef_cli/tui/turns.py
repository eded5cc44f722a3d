"""A thread that does what it is given, one after the other, in the order it was given."""

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class Turns:
    """``failed`` is told what a piece of work raised; the thread goes on with the next one."""

    def __init__(self, name: str, failed: Callable[[Exception], object]) -> None:
        self._failed = failed
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def do(self, work: Work) -> None:
        """Soon. Returns at once."""
        self._queue.put(work)
        if self._thread.ident is None:
            self._thread.start()

    def stop(self, seconds: float) -> None:
        """Do what was given until now, and end; waits at most so long for it."""
        if self._thread.ident is not None:
            self._queue.put(None)
            self._thread.join(seconds)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except Exception as error:  # the edge: a thread that ended would swallow all that comes later
                self._failed(error)
