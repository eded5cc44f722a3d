"""Forgetting: from what a person names to files that no longer hold it.

Work goes to the writer in small transactions, so that records go on being written meanwhile, and whatever a crash left
half done is finished by the next purge. The bytes are gone when `run` returns: rows are overwritten, the index merged,
the log written back and cut.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from daemon.core.errors import Conflict, NotFound, StoreError, UsageError
from daemon.core.privacy import Purge, Purged
from daemon.store import audit, forget, opening, sweep
from daemon.store.connection import Pool, Reader, in_parts, marks
from daemon.store.pins import PINNED

#: Up to this size the file is written anew at the end: moving rows about has left pieces of them between others.
_COMPACTED_BYTES: Final = 128 << 20
#: Up to so many records are indexed anew.
_ANEW: Final = 1000
#: Pages of the index that one step merges.
_MERGED_PAGES: Final = 64
_PATIENCE_SECONDS: Final = 10.0
#: Records whose hints are looked for at once: a look reads all of them.
_HINTED: Final = 320 * forget.BATCH

_P = ParamSpec("_P")
_T = TypeVar("_T")
Submit = Callable[[Callable[[sqlite3.Connection], Any]], "Future[Any]"]
#: Phase, how much of it is done, of how much.
Progress = Callable[[str, int, int], None]


class Purges:
    """``transact`` runs a function in the writer's transaction, ``alone`` in its thread outside of one; ``forget``
    makes it drop what it remembers of records. All methods block.
    """

    def __init__(self, path: Path, pool: Pool, transact: Submit, alone: Submit, *, forget: Callable[[], None]) -> None:
        self._path = path
        self._pool = pool
        self._transact = transact
        self._alone = alone
        self._forget = forget
        self._lock = threading.Lock()

    def expired(self, before_ns: int, limit: int) -> tuple[str, ...]:
        """Ids of at most so many sessions whose last record is older."""
        with self._pool.reader() as reader:
            rows = reader.db.execute(
                f"SELECT uid FROM session s WHERE updated_ns < ? AND NOT {PINNED} LIMIT ?", (before_ns, limit)
            )
            return tuple(uid for (uid,) in rows)

    def plan(self, wanted: Purge) -> Purged:
        """What would go. Raises NotFound for what is not there, Conflict for what a job learns from just now."""
        with self._pool.reader() as reader:
            seqs, kept = _select(reader, wanted)
            return replace(_plan(reader, seqs), kept_pinned=kept, aside=self._aside())

    def run(self, wanted: Purge, progress: Progress, *, settle: bool = True) -> Purged:
        """Forget it. Raises as `plan`, and StoreError; what was removed until then stays so. Without ``settle`` its
        words and bytes are gone only after `settle`.
        """
        with self._lock:
            with self._pool.reader() as reader:
                seqs, kept = _select(reader, wanted)
                planned = _plan(reader, seqs)
            removed = self._remove(seqs, progress, sums=wanted.sums)
            removed.messages = self._sweep(progress)
            facts = _facts(wanted) | {"records": removed.records, "sessions": removed.sessions}
            if removed.records:
                self._transact(lambda db: audit.add(db, "purge", facts)).result()
            compacted = settle and self._settle(progress, compact=True)
        return replace(
            planned, records=removed.records, sessions=removed.sessions, reports=removed.reports,
            messages=removed.messages, compacted=compacted, kept_pinned=kept, aside=self._aside(),
        )  # fmt: skip

    def _aside(self) -> tuple[str, ...]:
        return tuple(map(str, opening.kept_aside(self._path)))

    def settle(self) -> None:
        """Make sure that what was removed is in no file any more, without making records wait for it."""
        with self._lock:
            self._settle(lambda *_: None, compact=False)

    def _settle(self, progress: Progress, *, compact: bool) -> bool:
        """``compact``: also write a small database anew, which leaves no piece of a row between others."""
        self._reindex(progress)
        return self._clean(compact=compact)

    def _remove(self, seqs: Sequence[int], progress: Progress, *, sums: bool = True) -> forget.Removed:
        removed = forget.Removed()
        known: forget.Hints = {}
        for start in range(0, len(seqs), forget.BATCH):
            progress("records", start, len(seqs))
            if start % _HINTED == 0:
                with self._pool.reader() as reader:
                    known = forget.hints(reader, seqs[start : start + _HINTED])
            removed.add(self._change(forget.remove, seqs[start : start + forget.BATCH], known, sums=sums))
        return removed

    def _change(
        self, work: Callable[Concatenate[sqlite3.Connection, Reader, _P], _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """In a transaction of the writer's, which remembers nothing of records from here on."""

        def apply(db: sqlite3.Connection) -> _T:
            self._forget()
            with self._pool.reader() as reader:
                return work(db, reader, *args, **kwargs)

        made: _T = self._transact(apply).result()
        return made

    def _sweep(self, progress: Progress) -> int:
        with self._pool.reader() as reader:
            found = sweep.look(reader, sweep.orphans(reader.db))
        parts = list(sweep.batches(found))
        dropped = 0
        for number, (part, ids) in enumerate(parts):
            progress("messages", number, len(parts))
            count = self._change(sweep.drop, part, ids, upto=found.upto)
            dropped += count if part == "message" else 0
        self._transact(sweep.settle).result()
        return dropped

    def _reindex(self, progress: Progress) -> None:
        """Write the index without the words that were taken out: anew where it is small, else its pieces into one."""
        with self._pool.reader() as reader:
            seqs = [seq for (seq,) in reader.db.execute("SELECT seq FROM record ORDER BY seq LIMIT ?", (_ANEW + 1,))]
        if len(seqs) > _ANEW:
            self._merge(progress)
            return
        self._transact(self._emptied).result()
        for start in range(0, len(seqs), forget.BATCH):
            progress("index", start, len(seqs))
            self._change(forget.index_again, seqs[start : start + forget.BATCH])

    def _emptied(self, db: sqlite3.Connection) -> None:
        self._forget()  # of what the index has in part, too
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")

    def _merge(self, progress: Progress) -> None:
        # FTS5 keeps notes about what was deleted unless it merges into a new oldest level, and it makes one only where
        # pieces lie on several levels: a fresh piece sees to that.
        for word in ("INSERT INTO words (rowid, text) VALUES (0, 'x')",
                     "INSERT INTO words (words, rowid, text) VALUES ('delete', 0, 'x')"):  # fmt: skip
            self._transact(lambda db, word=word: db.execute(word) and None).result()  # type: ignore[misc]
        pages, more = -_MERGED_PAGES, True
        while more:
            progress("index", 0, 0)
            more = self._transact(_merging(pages)).result()
            pages = _MERGED_PAGES

    def _clean(self, *, compact: bool) -> bool:
        """Cut the write-ahead log; True where the file was written anew, too."""
        compact = compact and self._path.stat().st_size <= _COMPACTED_BYTES
        if compact:
            self._alone(lambda db: db.execute("VACUUM") and None).result()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._alone(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]).result():
            if time.monotonic() > deadline:
                raise StoreError(
                    f"another process reads {self._path}: its log still holds what was removed",
                    hint=f"fuser -v {self._path}, then the same again",
                )
            time.sleep(0.05)
        return compact


def _merging(pages: int) -> Callable[[sqlite3.Connection], bool]:
    def apply(db: sqlite3.Connection) -> bool:
        before = db.total_changes
        db.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (pages,))
        return db.total_changes - before >= 2  # as FTS5 says that there is more to do

    return apply


def _facts(wanted: Purge) -> dict[str, object]:
    """What was named, for the audit log: ids as they are, a folder not at all."""
    return {
        "named": sorted((*wanted.sessions, *wanted.receipts)), "before_ns": wanted.before_ns,
        "scenario": wanted.scenario, "repository": wanted.repository is not None,
    }  # fmt: skip


def _select(reader: Reader, wanted: Purge) -> tuple[list[int], int]:
    """Seqs, newest first, so that few of those that stay have to be written out; and how many pinned sessions stay."""
    where, values = ["1"], list[object]()
    for uid in wanted.sessions:
        _known(reader, "session", "uid", uid)
    for uid in wanted.receipts:
        _known(reader, "record", "receipt", uid)
    for column, given in (("s.uid", wanted.sessions), ("r.receipt", wanted.receipts)):
        if given:
            where.append(f"{column} IN ({marks(given)})")
            values += given
    if wanted.before_ns is not None:
        where.append("s.updated_ns < ?")
        values.append(wanted.before_ns)
    if wanted.scenario is not None:
        where.append("s.scenario = ?")
        values.append(reader.names.find(reader.db, wanted.scenario))
    if wanted.repository is not None:
        where.append("(s.cwd = ? OR substr(s.cwd, 1, ?) = ?)")
        folder = wanted.repository.rstrip("/")
        values += [folder, len(folder) + 1, f"{folder}/"]
    if len(where) == 1:
        raise UsageError("nothing says what is to be removed", hint="reef traces purge --help")
    matching = f"FROM record r JOIN session s ON s.id = r.session WHERE {' AND '.join(where)}"
    if wanted.pinned:
        kept, pins = 0, ""
    else:
        (kept,) = reader.db.execute(f"SELECT count(DISTINCT s.id) {matching} AND {PINNED}", values).fetchone()
        pins = f"AND NOT {PINNED}"
    rows = reader.db.execute(f"SELECT r.seq {matching} {pins} ORDER BY r.seq DESC", values)
    return [seq for (seq,) in rows], kept


def _known(reader: Reader, table: str, column: str, uid: str) -> None:
    if reader.db.execute(f"SELECT 1 FROM {table} WHERE {column} = ?", (uid,)).fetchone() is None:
        raise NotFound(f"no {table} {uid!r}", hint="reef traces list")


def _plan(reader: Reader, seqs: Sequence[int]) -> Purged:
    gone, would = frozenset(seqs), sweep.Unheld()
    sessions: set[int] = set()
    reports: set[int] = set()
    jobs: dict[str, tuple[str, str | None]] = {}
    for part, these in in_parts(seqs):
        sessions.update(id for (id,) in reader.db.execute(f"SELECT session FROM record WHERE seq IN ({these})", part))
        sweep.name(reader, part, would)
        reports.update(id for (id,) in reader.db.execute(f"SELECT report FROM reference WHERE seq IN ({these})", part))
        for uid, state, release in reader.db.execute(
            f"""SELECT j.uid, j.state, j.release_id FROM job j WHERE j.id IN
            (SELECT job FROM claim WHERE kind = 'record' AND item IN ({these}))""",
            part,
        ):
            jobs[uid] = (state, release)
    running = next((uid for uid, (state, _) in jobs.items() if state in ("queued", "running")), None)
    if running is not None:
        raise Conflict(f"job {running} learns from it just now", hint=f"reef jobs cancel {running}, or wait for it")
    named = len(would.messages)
    sweep.look(reader, would, gone)
    return Purged(
        records=len(seqs), sessions=sum(_ends(reader, id, gone) for id in sessions),
        reports=sum(_empties(reader, id, gone) for id in reports), messages=len(would.messages),
        kept_messages=named - len(would.messages),
        releases=tuple(sorted({release for _, release in jobs.values() if release})), jobs=tuple(sorted(jobs)),
        pinned=sum(_is_pinned(reader, id) for id in sessions),
    )  # fmt: skip


def _is_pinned(reader: Reader, session: int) -> bool:
    return bool(reader.db.execute(f"SELECT {PINNED} FROM session s WHERE s.id = ?", (session,)).fetchone()[0])


def _ends(reader: Reader, session: int, gone: frozenset[int]) -> bool:
    return all(seq in gone for (seq,) in reader.db.execute("SELECT seq FROM record WHERE session = ?", (session,)))


def _empties(reader: Reader, report: int, gone: frozenset[int]) -> bool:
    return all(seq in gone for (seq,) in reader.db.execute("SELECT seq FROM reference WHERE report = ?", (report,)))
