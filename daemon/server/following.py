"""What makes the daemon look at working copies: files that are saved there, releases that come, its own start.

The watching is `watchfiles`' (inotify, FSEvents), in a thread; the event loop only hears of it, half a second after an
editor is done. Where it cannot be had, working copies are looked at when `reef harness status` asks, and that is said.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import Final

from daemon.core.paths import Home
from daemon.server.events import Changes
from daemon.server.heads import Heads
from daemon.server.working import Working
from daemon.store.working import copy, tree

_log = logging.getLogger("reef.harness")

#: Milliseconds: an editor writes a file in several steps, a person saves several files.
_DEBOUNCE: Final = 500
_STEP: Final = 100
_PATIENCE_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 60.0


async def run(home: Home, working: Working, changes: Changes, heads: Heads) -> None:
    """Until it is cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_files(home, working))
        group.create_task(_releases(working, changes, heads))


async def _releases(working: Working, changes: Changes, heads: Heads) -> None:
    version = -1
    while True:
        version = await changes.after(version, _PATIENCE_SECONDS)
        for scenario, base in working.bases().items():
            if heads.tip(scenario).release_id != base:
                await _look(working, scenario)


async def _files(home: Home, working: Working) -> None:
    while True:
        if not home.harness.is_dir():
            await working.made.wait()
        working.made.clear()
        try:
            async with aclosing(_saved(home, working)) as saved:
                async for scenarios in saved:
                    for scenario in scenarios:
                        await _look(working, scenario)
        except Exception as error:  # the edge: a system without watches left must not end the daemon
            working.blind = f"working copies are not watched: {error}; `reef harness status` looks at them"
            _log.warning("%s", working.blind)
            await asyncio.sleep(_AGAIN_SECONDS)
        working.blind = None


async def _look(working: Working, scenario: str) -> None:
    try:
        await working.look(scenario)
    except Exception:  # the edge: the next edit must be followed all the same
        _log.exception("the working copy of %s", scenario)


async def _saved(home: Home, working: Working) -> AsyncGenerator[Collection[str]]:
    """Scenarios in whose working copies something may have been saved, until there is one more: at first all of them,
    once the folder is watched, so that nothing is missed between a look and the watch.
    """
    from watchfiles import awatch  # type: ignore[import-not-found, unused-ignore]  # who has none need not load it

    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it counts every change
    watch = awatch(home.harness, watch_filter=_counts(home), debounce=_DEBOUNCE, step=_STEP, stop_event=working.made)
    first = asyncio.ensure_future(anext(watch, None))
    try:
        await asyncio.sleep(0)  # with its first step the folder is watched
        yield await working.known()
        changed = await first
        while changed is not None:
            yield {found for _, path in changed if (found := _scenario(home, path)) is not None}
            changed = await anext(watch, None)
    finally:
        first.cancel()


def _counts(home: Home) -> Callable[[object, str], bool]:
    return lambda _change, path: _scenario(home, path) is not None


def _scenario(home: Home, path: str) -> str | None:
    """None for what is no file of a working copy."""
    scenario, below = copy.place_of(home, path)
    return None if scenario is None or tree.passing(below) else scenario
