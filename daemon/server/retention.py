"""Forgetting by age: sessions whose last record is older than the configuration keeps them.

In the background, a few at a time, behind whatever records; never on a request's way.
"""

import asyncio
import logging
import time
from typing import Final

from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.privacy import Purge, Purged
from daemon.store.db import Store

_log = logging.getLogger("reef.retention")

_DAY_NS: Final = 86_400 * 1_000_000_000
#: After the start and between two looks.
_FIRST_SECONDS: Final = 60.0
_EVERY_SECONDS: Final = 3600.0
#: Sessions at once, and the rest before the next ones.
_BATCH: Final = 20
_REST_SECONDS: Final = 1.0


async def run(store: Store, days: float) -> None:
    """Until it is cancelled."""
    await asyncio.sleep(_FIRST_SECONDS)
    while True:
        try:
            while await asyncio.to_thread(once, store, time.time_ns() - int(days * _DAY_NS)):
                await asyncio.sleep(_REST_SECONDS)
        except ReefError as error:  # a full disk: tried again later
            _log.warning("old sessions wait: %s", error.message)
        await asyncio.sleep(_EVERY_SECONDS)


def once(store: Store, before_ns: int) -> bool:
    """Forget a few sessions; True: there are more. Blocking. Those that a job learns from stay for now."""
    old = store.purges.expired(before_ns, _BATCH)
    gone = [purged for uid in old if (purged := _one(store, uid, before_ns)) is not None]
    if gone:
        _log.info("%d sessions were older than they are kept", len(gone))
    return len(old) == _BATCH and bool(gone)


def _one(store: Store, uid: str, before_ns: int) -> Purged | None:
    try:
        return store.purges.run(Purge(sessions=(uid,), before_ns=before_ns), lambda *_: None, compact=False)
    except (Conflict, NotFound):
        return None
