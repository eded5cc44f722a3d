"""What is made of a record after it was acknowledged: its words in the full-text index, and the signals it shows.

Done by the writer while nothing waits. A mark in ``tally`` says how far it is, so a crash costs nothing but the work
since. System prompts are left out of the index: every session has them.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from daemon.core.records import Dialect, End, Kind, StoredMessage
from daemon.store import messages as content
from daemon.store import signals
from daemon.store.connection import Reader
from daemon.store.recent import Unread
from daemon.store.requests import added

#: Records and letters a transaction: a few ms, so that a waiting record is not kept long.
BATCH: Final = 32
_LETTERS: Final = 1 << 20


def catch_up(db: sqlite3.Connection, reader: Reader, read: signals.Read | None, unread: Unread) -> int:
    """Do the next records inside the writer's transaction; returns how many there were, `BATCH` where there is more to
    do. Without ``read`` there are no signals.

    A long one is done in parts: the index takes more words of a row, the same ones again too, so a crash costs nothing.
    """
    mark = db.execute("SELECT indexed FROM tally").fetchone()[0]
    rows = db.execute(
        """SELECT r.seq, q.answer, q.seen, q.kept, q.ids, r.dialect, r.kind, r."end", r.parent, r.retry_of, r.edge
        FROM request q JOIN record r ON r.seq = q.seq WHERE q.seq > ? ORDER BY q.seq LIMIT ?""",
        (mark, BATCH),
    ).fetchall()
    found: list[tuple[int, list[signals.Signal]]] = []
    room = _LETTERS
    for seq, answer, seen, kept, blob, *facts in rows:
        if room <= 0:
            break
        said, begun = unread.take(seq) or (_said(db, reader, (seq, answer, seen, kept, blob)), 0)
        end, room = _fits(said, begun, room)
        db.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (seq, content.words(said[begun:end])))
        if end < len(said):
            unread.put(seq, said, end)
            break
        mark = seq
        if read is not None:
            shown = _shown(db, seq, facts)
            told = (
                [read(shown.dialect, one.raw) for one in said[: len(said) - (answer is not None)]]
                if shown.parent is not None
                else []
            )
            found.append((seq, list(signals.of(shown, told))))
    if rows:
        # Each table that is written after words makes the index write what it has.
        signals.keep(db, found)
        db.execute("UPDATE tally SET indexed = ? WHERE id = 1", (mark,))
    return BATCH if rows and mark < rows[-1][0] else len(rows)


def _said(
    db: sqlite3.Connection, reader: Reader, row: tuple[int, int | None, int, int, bytes]
) -> tuple[StoredMessage, ...]:
    """What a record added to its conversation."""
    seq, answer, seen, kept, blob = row
    ids = added(db, seq, (seen, kept, blob))
    return tuple(content.messages(reader, ids if answer is None else [*ids, answer]))


def _fits(said: Sequence[StoredMessage], begin: int, room: int) -> tuple[int, int]:
    """Up to where messages from ``begin`` on have so many letters, one at least; and the letters left."""
    end = begin
    while end < len(said) and (room > 0 or end == begin):
        room -= len(said[end].text)
        end += 1
    return end, room


def _shown(db: sqlite3.Connection, seq: int, facts: list[Any]) -> signals.Shown:
    dialect, kind, end, parent, retry_of, edge = facts
    left = _left(db, seq, parent) if edge == "fork" and kind == Kind.MAIN else None
    return signals.Shown(seq, Dialect(dialect), Kind(kind), End(end), parent, retry_of, left)


def _left(db: sqlite3.Connection, seq: int, parent: int) -> int | None:
    """The main line's record that went on from the same place before, in the session where that place is."""
    row = db.execute(
        """SELECT max(seq) FROM record WHERE session = (SELECT session FROM record WHERE seq = ?1)
        AND seq > ?1 AND seq < ?2 AND parent = ?1 AND kind = 'main' AND "end" = 'ok'""",
        (parent, seq),
    ).fetchone()
    return None if row is None else row[0]
