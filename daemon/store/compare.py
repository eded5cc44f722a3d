"""A request beside the one that its agent sent before: how far both are the same. Reads only.

What is the same at the beginning is what an engine's or a provider's prompt cache can give back; where it parts, all
that follows is read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from daemon.core.prefix import shared
from daemon.core.records import Dialect, Kind, StoredMessage
from daemon.core.rows import RecordRow
from daemon.store import messages as content
from daemon.store import records, requests
from daemon.store.connection import Reader, in_parts
from daemon.store.messages import Frame

_MAIN_LINE: Final = (Kind.MAIN, Kind.RETRY)


@dataclass(frozen=True, slots=True)
class Compared:
    """``kept`` messages are the same at the beginning, by their keys: where a cache is marked does not count.

    ``was``: what the previous request, then its answer, had right after them, None where that was all; ``now``: what
    this one has there. ``added`` follows after both. ``lost`` of ``size`` bytes of the previous request stood from
    there on. ``chained``: this request names the answer it goes on from, and does not send what was before.
    """

    record: RecordRow
    previous: RecordRow
    frames: tuple[Frame, Frame]
    kept: int
    before: int
    was: StoredMessage | None
    now: StoredMessage | None
    added: tuple[StoredMessage, ...]
    lost: int
    size: int
    chained: bool

    @property
    def of_answer(self) -> bool:
        """Whether all of the previous prompt is there, and only its answer came back otherwise."""
        return self.kept == self.before


def compared(reader: Reader, receipt: str) -> Compared | None:
    """None where nothing was sent before it. Raises NotFound."""
    record = records.record(reader, receipt)
    seq = _previous(reader, record)
    if seq is None:
        return None
    previous = records.by_seq(reader, seq)
    ids, before = requests.message_ids(reader.db, record.seq), requests.message_ids(reader.db, seq)
    frame, answer, seen = reader.db.execute(
        "SELECT q.frame, p.answer, q.seen FROM request q, request p WHERE q.seq = ? AND p.seq = ?", (record.seq, seq)
    ).fetchone()
    (frame_before,) = reader.db.execute("SELECT frame FROM request WHERE seq = ?", (seq,)).fetchone()
    chained = record.dialect is Dialect.RESPONSES and record.parent == previous.receipt and not seen and bool(before)
    said = before if answer is None else [*before, answer]
    known = _sizes(reader, {*ids, *said})
    kept = 0 if chained else shared([known[id][0] for id in said], [known[id][0] for id in ids])
    parted = not chained and kept < min(len(said), len(ids))
    after = ids if chained else ids[kept + parted :]
    frames = (content.frame(reader, frame_before), content.frame(reader, frame))
    around = len(frames[0].head) + len(frames[0].tail)
    return Compared(
        record, previous, frames, kept, len(before),
        _one(reader, said[kept]) if parted else None, _one(reader, ids[kept]) if parted else None,
        tuple(content.messages(reader, after)),
        sum(known[id][1] for id in before[kept:]) if parted else 0,
        around + sum(known[id][1] for id in before), chained,
    )  # fmt: skip


def _previous(reader: Reader, record: RecordRow) -> int | None:
    """The one before it in its line: the main one, or that of a sub-agent with a name; else what it goes on from."""
    session, subagent, parent = reader.db.execute(
        "SELECT r.session, q.subagent, r.parent FROM record r JOIN request q ON q.seq = r.seq WHERE r.seq = ?",
        (record.seq,),
    ).fetchone()
    main = record.kind in _MAIN_LINE
    if not main and subagent is None:
        return int(parent) if parent is not None else None
    kinds = _MAIN_LINE if main else (Kind.SUBAGENT, Kind.SUBAGENT)
    found = reader.db.execute(
        """SELECT r.seq FROM record r JOIN request q ON q.seq = r.seq WHERE r.session = ? AND r.seq < ?
        AND r.kind IN (?, ?) AND q.subagent IS ? ORDER BY r.seq DESC LIMIT 1""",
        (session, record.seq, *kinds, subagent),
    ).fetchone()
    return None if found is None else int(found[0])


def _sizes(reader: Reader, ids: set[int]) -> dict[int, tuple[bytes, int]]:
    """The key and the bytes of each message."""
    found: dict[int, tuple[bytes, int]] = {}
    for part, marks in in_parts(sorted(ids)):
        rows = reader.db.execute(f"SELECT id, key, raw_bytes FROM message WHERE id IN ({marks})", part)
        found.update((id, (key, size)) for id, key, size in rows)
    return found


def _one(reader: Reader, id: int) -> StoredMessage:
    found: Sequence[StoredMessage] = content.messages(reader, [id])
    return found[0]
