"""Forgetting by age: sessions whose last record is older than the configuration keeps them.

In the background, a few at a time, behind whatever records; never on a request's way.
"""

import asyncio
import logging
import time
from typing import Final

from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.privacy import Purge
from daemon.store.db import Store

_log = logging.getLogger("reef.retention")

_DAY_NS: Final = 86_400 * 1_000_000_000
#: After the start and between two looks.
_FIRST_SECONDS: Final = 60.0
_EVERY_SECONDS: Final = 86_400.0
#: Sessions at once, and the rest before the next ones.
_BATCH: Final = 20
_REST_SECONDS: Final = 1.0


async def run(store: Store, days: float) -> None:
    """Until it is cancelled."""
    await asyncio.sleep(_FIRST_SECONDS)
    while True:
        try:
            await _look(store, time.time_ns() - int(days * _DAY_NS))
        except ReefError as error:  # a full disk: tried again later
            _log.warning("old sessions wait: %s", error.message)
        await asyncio.sleep(_EVERY_SECONDS)


async def _look(store: Store, before_ns: int) -> None:
    gone = more = await asyncio.to_thread(once, store, before_ns)
    while more:
        await asyncio.sleep(_REST_SECONDS)
        more = await asyncio.to_thread(once, store, before_ns)
        gone += more
    if gone:
        await asyncio.to_thread(store.purges.settle)
        _log.info("%d sessions were older than they are kept", gone)


def once(store: Store, before_ns: int) -> int:
    """Forget a few sessions; how many. Blocking. Those that a job learns from stay for now."""
    old = store.purges.expired(before_ns, _BATCH)
    try:
        return _purged(store, old, before_ns) if old else 0
    except (Conflict, NotFound):
        return sum(_one(store, uid, before_ns) for uid in old)


def _one(store: Store, uid: str, before_ns: int) -> int:
    try:
        return _purged(store, (uid,), before_ns)
    except (Conflict, NotFound):
        return 0


def _purged(store: Store, sessions: tuple[str, ...], before_ns: int) -> int:
    wanted = Purge(sessions=sessions, before_ns=before_ns, sums=False)  # how much was used is kept longer than what
    return store.purges.run(wanted, lambda *_: None, settle=False).sessions
