"""Pins: sessions that a person calls golden. Neither age nor a broad purge takes them."""

import sqlite3
import time
from collections.abc import Sequence
from typing import Final

from daemon.core.errors import NotFound
from daemon.store import audit

#: Of a session ``s``: it is pinned, or what called its agent is.
PINNED: Final = """(s.pinned_ns IS NOT NULL
    OR EXISTS (SELECT 1 FROM session q WHERE q.id = s.parent AND q.pinned_ns IS NOT NULL))"""


def pin(db: sqlite3.Connection, sessions: Sequence[str], *, pinned: bool) -> tuple[str, ...]:
    """Pin sessions, or take the pins back, inside the writer's transaction: all or none. Those that were not so before.

    Raises NotFound naming the first that is not there.
    """
    changed = []
    for uid in sessions:
        row = db.execute("SELECT pinned_ns FROM session WHERE uid = ?", (uid,)).fetchone()
        if row is None:
            raise NotFound(f"no session {uid!r}", hint="reef traces list")
        if (row[0] is not None) != pinned:
            changed.append(uid)
    now = time.time_ns() if pinned else None
    db.executemany("UPDATE session SET pinned_ns = ? WHERE uid = ?", [(now, uid) for uid in changed])
    if changed:
        audit.add(db, "pin" if pinned else "unpin", {"sessions": sorted(changed)})
    return tuple(changed)
