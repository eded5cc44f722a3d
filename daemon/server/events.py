"""Waking those who watch: a counter of changes that any thread may raise and any number of streams may wait on.

What changed is read from the store, from where a watcher left off; so a slow watcher costs nothing and a lost one
resumes by id.
"""

import asyncio
from collections import deque
from typing import Final

from daemon.core.records import Appended, ReportRow

_REPORTS_KEPT: Final = 100
_RELEASES_KEPT: Final = 20


class Changes:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        self._reports: deque[tuple[int, ReportRow]] = deque(maxlen=_REPORTS_KEPT)
        self._releases: deque[tuple[int, dict[str, object]]] = deque(maxlen=_RELEASES_KEPT)
        self.version = 0

    def committed(self, _appended: list[Appended]) -> None:
        """From the store's writer thread, after a commit."""
        self._loop.call_soon_threadsafe(self.raise_one)

    def raise_one(self) -> None:
        """From the event loop: something a watcher may want to show has changed."""
        self.version += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def reported(self, row: ReportRow) -> None:
        """From the event loop, when feedback was stored or taken back."""
        self.raise_one()
        self._reports.append((self.version, row))

    def reports(self, version: int) -> list[ReportRow]:
        """Feedback newer than ``version``, as far as a watcher that keeps up needs it."""
        return [row for raised, row in self._reports if raised > version]

    def released(self, row: dict[str, object]) -> None:
        """From the event loop, when a head has moved or a candidate waits or was turned down."""
        self.raise_one()
        self._releases.append((self.version, row))

    def releases(self, version: int) -> list[dict[str, object]]:
        """Releases and candidates told after ``version``."""
        return [row for raised, row in self._releases if raised > version]

    async def after(self, version: int, seconds: float) -> int:
        """Wait, at most ``seconds``, until there is something newer than ``version``; returns the newest version."""
        if self.version <= version:
            future = self._loop.create_future()
            self._waiting.append(future)
            await asyncio.wait((future,), timeout=seconds)
        return self.version
