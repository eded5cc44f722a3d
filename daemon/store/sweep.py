"""Removing messages and frames that no record holds any more.

Who holds what is found by a reader, page by page, while records go on being written; the writer then only looks at
those that came meanwhile. Kept as orphans until it is done, so a crash costs nothing but the walk.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from daemon.store.connection import Reader, marks
from daemon.store.packing import Packer
from daemon.store.requests import unpacked

Part = Literal["message", "frame"]

_PAGE: Final = 2000
#: Rows a transaction.
_BATCH: Final = 200


@dataclass(slots=True)
class Unheld:
    """What nobody holds up to record ``upto``, and what was looked at."""

    messages: set[int] = field(default_factory=set)
    frames: set[int] = field(default_factory=set)
    upto: int = 0


def orphans(db: sqlite3.Connection) -> Unheld:
    found = Unheld()
    for kind, id in db.execute("SELECT kind, id FROM orphan"):
        (found.messages if kind == "message" else found.frames).add(id)
    return found


def name(reader: Reader, seqs: Sequence[int], found: Unheld) -> None:
    """Add the parts of these records to ``found``."""
    sql = f"SELECT frame, answer, ids FROM request WHERE seq IN ({marks(seqs)})"
    for frame, answer, ids in reader.db.execute(sql, seqs):
        found.frames.add(frame)
        found.messages.update(unpacked(ids))
        if answer is not None:
            found.messages.add(answer)


def look(reader: Reader, found: Unheld, without: frozenset[int] = frozenset()) -> Unheld:
    """Take out of ``found`` what a record holds, those in ``without`` apart."""
    while True:
        rows = reader.db.execute(
            "SELECT seq, frame, answer, ids FROM request WHERE seq > ? ORDER BY seq LIMIT ?", (found.upto, _PAGE)
        ).fetchall()
        for seq, *parts in rows:
            if seq not in without:
                _held(found, *parts)
        if not rows:
            return found
        found.upto = rows[-1][0]


def _held(found: Unheld, frame: int, answer: int | None, ids: bytes) -> None:
    found.frames.discard(frame)
    found.messages.difference_update(unpacked(ids))
    if answer is not None:
        found.messages.discard(answer)


def batches(found: Unheld) -> Iterator[tuple[Part, list[int]]]:
    for part, ids in (("message", sorted(found.messages)), ("frame", sorted(found.frames))):
        for start in range(0, len(ids), _BATCH):
            yield part, ids[start : start + _BATCH]  # type: ignore[misc]  # the two words of Part


def drop(db: sqlite3.Connection, reader: Reader, part: Part, ids: list[int], *, upto: int) -> int:
    """Remove those that no record after ``upto`` took up again, inside the writer's transaction; how many."""
    late = Unheld(set(ids) if part == "message" else set(), set(ids) if part == "frame" else set())
    for row in db.execute("SELECT frame, answer, ids FROM request WHERE seq > ?", (upto,)):
        _held(late, *row)
    going = late.messages | late.frames
    for id in going:
        _write_out(db, reader.packer, part, id)
    db.executemany(f"DELETE FROM {part} WHERE id = ?", [(id,) for id in going])
    db.executemany("DELETE FROM orphan WHERE kind = ? AND id = ?", [(part, id) for id in ids])
    return len(going)


def _write_out(db: sqlite3.Connection, packer: Packer, part: Part, id: int) -> None:
    """What was compressed against it is compressed by itself."""
    dependents = db.execute(f"SELECT id, body FROM {part} WHERE base = ?", (id,)).fetchall()
    if not dependents:
        return
    like = packer.unpack(db.execute(f"SELECT body FROM {part} WHERE id = ?", (id,)).fetchone()[0])
    db.executemany(
        f"UPDATE {part} SET base = NULL, body = ? WHERE id = ?",
        [(packer.pack(packer.unpack(body, like)), dependent) for dependent, body in dependents],
    )


def settle(db: sqlite3.Connection) -> None:
    """All of them were looked at: the rest is held by somebody."""
    db.execute("DELETE FROM orphan")
