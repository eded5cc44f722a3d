"""What makes the daemon look at a working copy: no moment in which somebody may save a file is missed."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from daemon.core.paths import Home
from daemon.server import following
from daemon.server.events import Changes
from daemon.server.working import Working
from daemon.store.releases import Releases
from daemon.store.working.copy import WorkingCopy
from tests.daemon.learning.test_publish import Desk

_PATIENCE_SECONDS = 60.0


async def test_what_is_saved_right_after_the_first_look_is_found(reef_home: Home) -> None:
    desk = Desk(Releases.open(reef_home))
    found = asyncio.Event()

    def looked(told: dict[str, Any]) -> None:
        if told["edits"]:
            found.set()
        else:
            (Path(told["path"]) / "rules.md").write_text("Mine.\n")

    working = Working(reef_home, desk, looked)
    WorkingCopy(reef_home, "default").make("base", {})
    task = asyncio.create_task(following.run(reef_home, working, Changes(asyncio.get_running_loop()), desk.heads))
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await found.wait()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
