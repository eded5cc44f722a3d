"""Waking those who watch: a counter of changes that any thread may raise and any number of streams may wait on.

What changed is read from the store, from where a watcher left off; so a slow watcher costs nothing and a lost one
resumes by id.
"""

import asyncio
from collections import deque
from typing import Final

from daemon.core.records import Appended
from daemon.core.rows import ReportRow

_REPORTS_KEPT: Final = 100
_NEWS_KEPT: Final = 200


class Changes:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        self._reports: deque[tuple[int, ReportRow]] = deque(maxlen=_REPORTS_KEPT)
        self._news: deque[tuple[int, str, object]] = deque(maxlen=_NEWS_KEPT)
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

    def tell(self, event: str, data: object) -> None:
        """From the event loop: something that is durable by now, to be sent under the event's name."""
        self.raise_one()
        self._news.append((self.version, event, data))

    def news(self, version: int) -> list[tuple[str, object]]:
        """What was told since ``version``, as (event, data)."""
        return [(event, data) for raised, event, data in self._news if raised > version]

    async def after(self, version: int, seconds: float) -> int:
        """Wait, at most ``seconds``, until there is something newer than ``version``; returns the newest version."""
        if self.version <= version:
            future = self._loop.create_future()
            self._waiting.append(future)
            await asyncio.wait((future,), timeout=seconds)
        return self.version
