"""A screen's work off the event loop: how it is asked for, and that what goes wrong in it is said and ends nothing."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from daemon.core.errors import ReefError
from reef_cli.tui.text import one_line

if TYPE_CHECKING:
    from reef_cli.tui.screens.panel import Panel

#: A blocking request in a thread.
off_loop = asyncio.to_thread


@contextmanager
def edge(failed: Callable[[ReefError], object]) -> Iterator[None]:
    """Where errors are told to the person. An answer of a form that nobody knows (another version's daemon, or no
    daemon at all) is one, and must not end the dashboard; ``REEF_DEBUG=1`` lets it, to show where."""
    try:
        yield
    except ReefError as error:
        failed(error)
    except OSError as error:  # the disk's doing, or its owner's
        where = f": {error.filename}" if error.filename else ""
        failed(ReefError(f"{error.strerror or error}{where}", hint="reef doctor"))
    except Exception as error:
        if os.environ.get("REEF_DEBUG"):
            raise
        told = f"unexpected {type(error).__name__}: {one_line(str(error), 100)}"
        failed(ReefError(told, hint="reef restart; REEF_DEBUG=1 reef shows where"))


def begin(panel: "Panel", work: Awaitable[object], *, group: str | None = None) -> None:
    """Run it while the screen is there; of a ``group`` the newest only."""

    async def run() -> None:
        with edge(panel.failed):
            await work

    panel.run_worker(run(), group=group or "default", exclusive=group is not None)


class Repeating:
    """Work that is asked for again and again: never twice at once, and once more after the last time asked.

    It is not done at all while ``wanted`` says no.
    """

    def __init__(
        self, panel: "Panel", work: Callable[[], Awaitable[None]], wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self._panel = panel
        self._work = work
        self._wanted = wanted
        self._asked = False
        self._busy = False

    def ask(self) -> None:
        if not self._wanted():
            return
        self._asked = True
        if not self._busy:
            self._busy = True
            self._panel.run_worker(self._run())

    async def _run(self) -> None:
        try:
            while self._asked:
                self._asked = False
                with edge(self._panel.failed):
                    await self._work()
        finally:
            self._busy = False
