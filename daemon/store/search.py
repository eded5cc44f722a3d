"""The full-text index: one document a record, holding what that record added to its conversation.

Filled by the writer while nothing waits, never on the way to an acknowledgement. A mark in ``tally`` says how far it
is, so a crash costs nothing but the work since. System prompts are left out: every session has them.
"""

import sqlite3

from daemon.store import messages as content
from daemon.store.connection import Reader
from daemon.store.requests import message_ids

#: Records a transaction: a few ms, so that a waiting record is not kept long.
BATCH = 16


def index(db: sqlite3.Connection, reader: Reader) -> int:
    """Index the next records inside the writer's transaction; returns how many there were."""
    mark = db.execute("SELECT indexed FROM tally").fetchone()[0]
    rows = db.execute(
        "SELECT seq, seen, answer FROM request WHERE seq > ? ORDER BY seq LIMIT ?", (mark, BATCH)
    ).fetchall()
    for seq, seen, answer in rows:
        ids = message_ids(db, seq)[seen:] + ([answer] if answer is not None else [])
        text = "\n".join(m.text for m in content.messages(reader, ids) if m.role != "system")
        db.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (seq, text.encode("utf-8", "replace").decode()))
    if rows:
        db.execute("UPDATE tally SET indexed = ?", (rows[-1][0],))
    return len(rows)
