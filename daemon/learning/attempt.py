"""One attempt at a job: its process, and what that says of itself, cut to what a person reads.

What a job says is never trusted further than to be shown: `Attempt.hear` takes nothing but the events it knows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from daemon.core.errors import ReefError
from daemon.core.learning import Progress
from daemon.learning.process import Child

_log = logging.getLogger("reef.jobs")

TEXT_MOST: Final = 500
#: Progress goes to the disk at most this often.
_TELL_SECONDS: Final = 0.5


class Attempt:
    """The job that runs now: what it has said so far, and what is asked of it."""

    def __init__(self, id: str, log: Path) -> None:
        self.id = id
        self.child = Child(log, self.hear)
        self.progress: Progress | None = None
        self.message = ""
        self.error: str | None = None
        self.cancelled = False
        self.settling = False
        self.news = asyncio.Event()
        self.ended = asyncio.Event()

    async def stop(self) -> None:
        await self.child.stop()

    async def tell(self, write: Callable[..., Awaitable[object]]) -> None:
        """Write what the job says, not more often than a person can read, until it is cancelled."""
        while True:
            await self.news.wait()
            self.news.clear()
            try:
                await write(self.id, progress=self.progress, message=self.message)
            except ReefError as error:  # a full disk: what it says is not worth its life
                _log.warning("job %s: %s", self.id, error.message)
            await asyncio.sleep(_TELL_SECONDS)

    def hear(self, event: dict[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for what is no event."""
        kind = event["event"]
        if kind == "progress":
            step, done, total, note = (event[name] for name in ("step", "done", "total", "note"))
            if type(done) is not int or type(total) is not int:
                raise TypeError
            self.progress = Progress(str(step)[:40], done, total, str(note)[:TEXT_MOST])
        elif kind in ("say", "candidate"):
            self.message = " ".join(str(event["text" if kind == "say" else "reason"]).split())[:TEXT_MOST]
        elif kind == "error":
            hint = f" ({event['hint']})" if event["hint"] else ""
            self.error = f"{event['message']}{hint}"[: 2 * TEXT_MOST]
        elif kind not in ("pair", "done"):
            raise ValueError(kind)
        self.news.set()
