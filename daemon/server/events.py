"""Waking those who watch: a counter of changes that any thread may raise and any number of streams may wait on.

Records are read from the store, from where a watcher left off. What has no place there (feedback, jobs, releases) is
kept here for a while, numbered, so that a slow watcher costs nothing, and one that comes back learns what it missed or
that it missed something.
"""

import asyncio
import secrets
from collections import deque
from typing import Final, NamedTuple

import msgspec

from daemon.core.records import Appended
from daemon.core.rows import ReportRow

_KEPT: Final = 500
_KEPT_BYTES: Final = 4 << 20


class News(NamedTuple):
    """``number`` counts from 1 in each run of the daemon; ``data`` is JSON."""

    number: int
    event: str
    data: bytes


class Changes:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        self._news: deque[News] = deque()
        self._bytes = 0
        self.version = 0
        #: Numbers of news mean something within one run only.
        self.run: Final = secrets.token_hex(4)
        #: The newest piece of news.
        self.told = 0

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
        self.tell("report", row)

    def tell(self, event: str, data: object) -> None:
        """From the event loop: something that is durable by now, to be sent under the event's name."""
        self.told += 1
        encoded = msgspec.json.encode(data)
        self._news.append(News(self.told, event, encoded))
        self._bytes += len(encoded)
        while len(self._news) > _KEPT or self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._news.popleft().data)
        self.raise_one()

    def news(self, after: int) -> tuple[list[News], bool]:
        """What was told after number ``after``, as far as it is kept; True: some of it no longer is."""
        oldest = self.told - len(self._news)
        return [news for news in self._news if news.number > after], after < oldest

    def forget(self) -> None:
        """From the event loop: what was told may be about what is to be forgotten. Who is behind will be told so."""
        self._news.clear()
        self._bytes = 0

    async def after(self, version: int, seconds: float) -> int:
        """Wait, at most ``seconds``, until there is something newer than ``version``; returns the newest version."""
        if self.version <= version:
            future = self._loop.create_future()
            self._waiting.append(future)
            await asyncio.wait((future,), timeout=seconds)
        return self.version
