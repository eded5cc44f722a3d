"""Waking those who watch: a counter of changes that any thread may raise and any number of streams may wait on.

What changed is read from the store, from where a watcher left off; so a slow watcher costs nothing and a lost one
resumes by id.
"""

import asyncio

from daemon.core.records import Appended


class Changes:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
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

    async def after(self, version: int, seconds: float) -> int:
        """Wait, at most ``seconds``, until there is something newer than ``version``; returns the newest version."""
        if self.version <= version:
            future = self._loop.create_future()
            self._waiting.append(future)
            await asyncio.wait((future,), timeout=seconds)
        return self.version
