"""The audit log: what was decided, when, as a chain of hashes. Append-only; holds ids and numbers, never what was said.

Each hash covers its entry and the hash before, so whoever kept one notices if anything up to it was changed or left
out. An entry is written in the transaction of what it tells.
"""

import hashlib
import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final

from daemon.core.privacy import AuditRow
from daemon.store import pages
from daemon.store.connection import Pool, Reader, reading

Submit = Callable[[Callable[[sqlite3.Connection], None]], "Future[None]"]

#: `daemon.core.ids.new_id`.
_OURS: Final = re.compile(r"[a-z]{3}_[0-9a-z]{26}")
_START: Final = bytes(32)
_COLUMNS: Final = "seq, at_ns, event, facts, hash"


def add(db: sqlite3.Connection, event: str, facts: Mapping[str, object]) -> None:
    """Append an entry inside the writer's transaction."""
    told, now = json.dumps(dict(facts), sort_keys=True, separators=(",", ":")), time.time_ns()
    last = db.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    seq, before = (1, _START) if last is None else (last[0] + 1, last[1])
    db.execute(
        f"INSERT INTO audit ({_COLUMNS}) VALUES (?,?,?,?,?)",
        (seq, now, event, told, _hash(before, seq, now, event=event, facts=told)),
    )


def named(id: str) -> str:
    """An id as the log keeps it: one that a client made up may say anything, so only its hash."""
    return id if _OURS.fullmatch(id) else f"sha256:{hashlib.sha256(id.encode('utf-8', 'replace')).hexdigest()[:16]}"


def entries(reader: Reader, limit: int = 50, before: str | None = None) -> tuple[list[AuditRow], str | None]:
    """Newest first, with the cursor of the next page."""
    rows, cursor = pages.rows(reader.db, f"SELECT {_COLUMNS} FROM audit", {}, limit=limit, before=before)
    return [AuditRow(seq, at, event, json.loads(facts), hash.hex()) for seq, at, event, facts, hash in rows], cursor


def released(reader: Reader) -> dict[str, int]:
    """Scenario → the number of its last release that the log has; 0: it was removed since."""
    rows = reader.db.execute(
        "SELECT json_extract(facts, '$.scenario'), coalesce(json_extract(facts, '$.number'), 0), max(seq) FROM audit"
        " WHERE event = 'scenario_removed' OR event = 'release' AND json_extract(facts, '$.state') = 'released'"
        " GROUP BY 1"
    )
    return {scenario: number for scenario, number, _ in rows}


def check(reader: Reader) -> tuple[int, str, str | None]:
    """(how many entries are sound, the last of their hashes, what is wrong with the next)."""
    before, expected = _START, 1
    for seq, at, event, facts, hash in reader.db.execute(f"SELECT {_COLUMNS} FROM audit ORDER BY seq"):
        if seq != expected:
            return expected - 1, before.hex(), f"entry {expected} is missing"
        if hash != _hash(before, seq, at, event=event, facts=facts):
            return expected - 1, before.hex(), f"entry {seq} was changed, or one before it"
        before, expected = hash, seq + 1
    return expected - 1, before.hex(), None


def _hash(before: bytes, seq: int, at_ns: int, *, event: str, facts: str) -> bytes:
    said = json.dumps([seq, at_ns, event, facts], separators=(",", ":"))
    return hashlib.sha256(before + said.encode()).digest()


class Audit:
    """The log's face for the rest of the daemon; ``transact`` runs a function in the writer's transaction."""

    def __init__(self, pool: Pool, transact: Submit) -> None:
        self._pool = pool
        self._transact = transact

    def note(self, event: str, facts: Mapping[str, object]) -> "Future[None]":
        """Append an entry; on disk once the future resolves."""
        return self._transact(lambda db: add(db, event, facts))

    page = reading(entries)
    released = reading(released)
    check = reading(check)
