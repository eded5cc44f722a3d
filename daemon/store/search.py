"""The full-text index: one document a record, holding what that record added to its conversation.

Filled by the writer while nothing waits, never on the way to an acknowledgement. A mark in ``tally`` says how far it
is, so a crash costs nothing but the work since. System prompts are left out: every session has them.
"""

import sqlite3
from collections.abc import Sequence

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
        text = content.words(content.messages(reader, ids))
        db.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (seq, text))
    if rows:
        db.execute("UPDATE tally SET indexed = ?", (rows[-1][0],))
    return len(rows)


def added(reader: Reader, words: Sequence[str], limit: int) -> list[tuple[str, bytes]]:
    """Dialect and bytes of what the newest ``limit`` records added that hold all ``words`` (letters and digits alone),
    and of those that are not indexed yet. In which order the words come is for the caller to see.
    """
    found = reader.db.execute(
        """SELECT rowid FROM words WHERE words MATCH ?
        UNION SELECT seq FROM request WHERE seq > (SELECT indexed FROM tally) ORDER BY 1 DESC LIMIT ?""",
        (" AND ".join(f'"{word}"' for word in words), limit),
    ).fetchall()
    said: list[tuple[str, bytes]] = []
    for (seq,) in found:
        dialect, seen = reader.db.execute(
            "SELECT r.dialect, q.seen FROM record r JOIN request q ON q.seq = r.seq WHERE r.seq = ?", (seq,)
        ).fetchone()
        said += [(dialect, raw) for raw in content.raws(reader, message_ids(reader.db, seq)[seen:])]
    return said
