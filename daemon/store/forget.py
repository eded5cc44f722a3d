"""Removing records, inside the writer's transaction: every row about them, and what other rows took from them.

What stays must still be whole: a request that shared its beginning with one that goes is written out, counters follow.
Messages and frames are only named as orphans here; `daemon.store.sweep` removes those that nobody else holds.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from daemon.store import feedback, rollups, sessions, spans
from daemon.store import messages as content
from daemon.store.connection import Reader, marks
from daemon.store.requests import message_ids, packed, unpacked

#: Records a transaction: a few ms each, so that a waiting record is not kept long.
BATCH: Final = 32


@dataclass(slots=True)
class Removed:
    records: int = 0
    sessions: int = 0
    reports: int = 0
    messages: int = 0

    def add(self, other: "Removed") -> None:
        self.records += other.records
        self.sessions += other.sessions
        self.reports += other.reports
        self.messages += other.messages


@dataclass(frozen=True, slots=True)
class _Gone:
    """The rows that go, `marks` for SQL's IN, and the sessions that they were in, with those that forked off."""

    seqs: tuple[int, ...]
    sessions: tuple[int, ...]
    near: tuple[int, ...] = field(default=())

    @property
    def marks(self) -> str:
        return marks(self.seqs)


#: Rows about a record that can't be found by it, and their keys: (table, column, the other).
_HINTS: Final = (("point", "hash", "seq"), ("answer_id", "id", "scenario"))
#: Of a record: what deletes such a row, with its values.
Hints = Mapping[int, list[tuple[str, tuple[Any, Any]]]]


def hints(reader: Reader, seqs: Sequence[int]) -> Hints:
    """What else there is of these records, looked for in all rows."""
    found: dict[int, list[tuple[str, tuple[Any, Any]]]] = {}
    for table, one, other in _HINTS:
        sql = f"SELECT seq, {one}, {other} FROM {table} WHERE seq IN (SELECT value FROM json_each(?))"
        for seq, *key in reader.db.execute(sql, (json.dumps(seqs),)):
            found.setdefault(seq, []).append((f"DELETE FROM {table} WHERE {one} = ? AND {other} = ?", tuple(key)))
    return found


def remove(db: sqlite3.Connection, reader: Reader, seqs: Sequence[int], known: Hints, *, sums: bool = True) -> Removed:
    """Remove at most `BATCH` records, whose `hints` are ``known``. ``reader`` reads what was committed before.
    ``sums``: those by hour and day lose their part, too.
    """
    there = tuple(seq for (seq,) in db.execute(f"SELECT seq FROM record WHERE seq IN ({marks(seqs)})", seqs))
    if not there:
        return Removed()
    gone = _gone(db, there)
    _write_out(db, reader, gone)
    for seq in gone.seqs:
        _unlink(db, reader, seq)
        for sql, key in known.get(seq, ()):
            db.execute(sql, key)
    reports = _reports(db, gone)
    if sums:
        rollups.take_away(db, gone.seqs)
    _delete(db, gone)
    ended = _sessions(db, reader, gone)
    db.execute(
        "UPDATE tally SET records = records - ?, sessions = sessions - ?, reports = reports - ?",
        (len(gone.seqs), ended, reports),
    )
    return Removed(len(gone.seqs), ended, reports)


def _gone(db: sqlite3.Connection, seqs: tuple[int, ...]) -> _Gone:
    owners = tuple(
        id for (id,) in db.execute(f"SELECT DISTINCT session FROM record WHERE seq IN ({marks(seqs)})", seqs)
    )
    forks = tuple(id for (id,) in db.execute(f"SELECT id FROM session WHERE parent IN ({marks(owners)})", owners))
    return _Gone(seqs, owners, tuple(dict.fromkeys((*owners, *forks))))


def _write_out(db: sqlite3.Connection, reader: Reader, gone: _Gone) -> None:
    """Requests and token spans that were kept as a difference to one that goes."""
    out = (*gone.seqs, *gone.seqs)
    for (seq,) in db.execute(
        f"""SELECT q.seq FROM record r JOIN request q ON q.seq = r.seq WHERE r.session IN ({marks(gone.near)})
        AND q.base IN ({gone.marks}) AND q.seq NOT IN ({gone.marks})""",
        (*gone.near, *out),
    ).fetchall():
        ids = message_ids(db, seq)
        db.execute(
            "UPDATE request SET base = NULL, kept = 0, depth = 0, ids = ? WHERE seq = ?",
            (packed(ids), seq),
        )
    for (seq,) in db.execute(
        f"SELECT seq FROM span WHERE base IN ({gone.marks}) AND seq NOT IN ({gone.marks})", out
    ).fetchall():
        spans.write_out(db, reader.packer, seq)


def _unlink(db: sqlite3.Connection, reader: Reader, seq: int) -> None:
    """Its words out of the index, its parts among the orphans."""
    frame, own, answer, seen = db.execute(
        "SELECT frame, ids, answer, seen FROM request WHERE seq = ?", (seq,)
    ).fetchone()
    answered = [answer] if answer is not None else []
    _unindex(db, reader, seq, message_ids(db, seq)[seen:] + answered)
    parts = [*unpacked(own), *answered]
    db.executemany("INSERT OR IGNORE INTO orphan VALUES ('message', ?)", [(id,) for id in parts])
    db.execute("INSERT OR IGNORE INTO orphan VALUES ('frame', ?)", (frame,))


def _unindex(db: sqlite3.Connection, reader: Reader, seq: int, added: list[int]) -> None:
    indexed, after = db.execute(
        "SELECT indexed, (SELECT min(seq) FROM record WHERE seq > indexed) FROM tally"
    ).fetchone()
    if seq > indexed and seq != after:
        return
    text = content.words(content.messages(reader, added))
    if seq == after:  # it may be there in part, but only all of a row can be taken out
        db.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (seq, text))
    db.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (seq, text))


def index_again(db: sqlite3.Connection, reader: Reader, seqs: Sequence[int]) -> None:
    """Into an empty index, the words of those that were in it before."""
    (indexed,) = db.execute("SELECT indexed FROM tally").fetchone()
    for seq, seen, answer in db.execute(
        f"SELECT seq, seen, answer FROM request WHERE seq IN ({marks(seqs)}) AND seq <= ?", (*seqs, indexed)
    ).fetchall():
        ids = message_ids(db, seq)[seen:] + ([answer] if answer is not None else [])
        text = content.words(content.messages(reader, ids))
        db.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (seq, text))


def _reports(db: sqlite3.Connection, gone: _Gone) -> int:
    """Feedback that is about nothing any more goes; how much that was."""
    named = db.execute(f"SELECT DISTINCT report FROM reference WHERE seq IN ({gone.marks})", gone.seqs).fetchall()
    db.execute(f"DELETE FROM reference WHERE seq IN ({gone.marks})", gone.seqs)
    empty = [
        id
        for (id,) in named
        if db.execute("SELECT 1 FROM reference WHERE report = ? LIMIT 1", (id,)).fetchone() is None
    ]
    db.executemany("DELETE FROM report WHERE id = ?", [(id,) for id in empty])
    return len(empty)


def _delete(db: sqlite3.Connection, gone: _Gone) -> None:
    for table in ("response", "span", "imported", "signal", "request", "record"):
        db.execute(f"DELETE FROM {table} WHERE seq IN ({gone.marks})", gone.seqs)
    db.execute(f"DELETE FROM signal WHERE at IN ({gone.marks})", gone.seqs)
    for column in ("parent", "retry_of"):
        db.execute(
            f"UPDATE record SET {column} = NULL WHERE session IN ({marks(gone.near)}) AND {column} IN ({gone.marks})",
            (*gone.near, *gone.seqs),
        )
    recipes = [name for (name,) in db.execute("SELECT DISTINCT recipe FROM claim")]
    db.executemany(  # that it was used stays known, not what it said
        "UPDATE claim SET content = NULL WHERE recipe = ? AND kind = 'record' AND item = ?",
        [(recipe, seq) for recipe in recipes for seq in gone.seqs],
    )


def _sessions(db: sqlite3.Connection, reader: Reader, gone: _Gone) -> int:
    """Remove sessions that have no record left, bring the others up to date; how many were removed."""
    ended = 0
    for session in gone.sessions:
        if db.execute("SELECT 1 FROM record WHERE session = ? LIMIT 1", (session,)).fetchone() is not None:
            sessions.recount(db, reader, session)
            feedback.rate(db, [session])
            continue
        db.execute("DELETE FROM session_key WHERE session = ?", (session,))
        db.execute("UPDATE session SET parent = NULL WHERE parent = ?", (session,))
        db.execute("DELETE FROM session WHERE id = ?", (session,))
        ended += 1
    return ended
