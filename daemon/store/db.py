"""The store's face: everything that is kept goes in and comes out here.

Writes go to one thread and return a future at once; it resolves after COMMIT. Reads may come from any thread and never
wait for writes. Whoever holds a resolved future can rely on the disk.
"""

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from daemon.core.learning import Task
from daemon.core.paths import private_directory
from daemon.core.records import Appended, Exchange, Transcript
from daemon.core.redact import Redactor
from daemon.core.rows import (
    NewReport,
    ReportRow,
    SessionRow,
)
from daemon.store import (
    afterwards,
    audit,
    compare,
    expected,
    feedback,
    imports,
    opening,
    orders,
    pins,
    records,
    requests,
    rollups,
    said,
    search,
    sessions,
    signals,
    spans,
    tasks,
    verify,
)
from daemon.store.connection import Durability, Pool, reading
from daemon.store.expected import Above
from daemon.store.learning import Learning
from daemon.store.ledger import Ledger
from daemon.store.names import Names
from daemon.store.preparing import Redact, prepare, unsplit
from daemon.store.purge import Purges
from daemon.store.query import Query
from daemon.store.signals import Read
from daemon.store.writer import Hooks, Job, Writer


class Store:
    """Records, sessions and feedback of one home. Open it once a process; another process may read it meanwhile."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, redact: Redact, *, read: Read | None, durability: Durability
    ) -> None:
        self.on_commit: Callable[[list[Appended]], None] | None = None
        self._path = path
        self._durability: Durability = durability
        self._last_seq = 0
        self._redact = redact
        self._read = read
        self._names = Names()
        self._ledger = Ledger(self._names)
        self._importer = imports.Importer(self._ledger, self._names, redact)
        self._pool = Pool(path)
        hooks = Hooks(self._ledger.finish, self._committed, self._rolled_back, self._idle, self._damaged)
        self._writer = Writer(db, path, hooks)
        self.learning = Learning(self._pool, self._transact, self._names, redact)
        self.audit = audit.Audit(self._pool, self._transact)
        self.purges = Purges(path, self._pool, self._transact, self._alone, forget=self._ledger.forget_records)

    @classmethod
    def open(
        cls, path: Path, durability: Durability = "full", redact: Redact | None = None, *, read: Read | None = None
    ) -> "Store":
        """Open or make the store at ``path``. Raises StoreError. ``read`` reads a message; without it, no signals.

        ``redact`` sees whatever a transcript did not: bodies that could not be parsed, error texts, paths, feedback.
        Without it an own redactor does, whose marks are only comparable within this process.
        """
        private_directory(path.parent)
        db = opening.opened(path, durability)
        return cls(db, path, redact or Redactor(secrets.token_bytes(32)).redact, read=read, durability=durability)

    # -- writing ------------------------------------------------------------------------------------

    def append(self, exchange: Exchange, parse: Callable[[], Transcript]) -> "Future[Appended]":
        """Store one exchange. ``parse`` runs in the writer's thread; when it raises the bodies are kept whole."""
        ledger, redact = self._ledger, self._redact
        return self._submit(
            lambda: prepare(exchange, parse, redact), ledger.append,
            lambda db, error: ledger.append(db, unsplit(exchange, redact, f"not split: {error!r}")),
        )  # fmt: skip

    def import_lines(self, lines: Sequence[imports.Line]) -> "Future[list[Appended]]":
        """Store records and reports from elsewhere, all or none; the new records. Fails with UsageError, Conflict or
        UnknownReference."""
        return self._submit(lambda: imports.prepared(lines, self._redact), self._importer.keep)

    def report(self, report: NewReport) -> "Future[tuple[ReportRow, bool]]":
        """Store feedback; the bool says whether it is new. Fails with UsageError, UnknownReference or Conflict."""

        def apply(db: sqlite3.Connection, _: Any) -> tuple[ReportRow, bool]:
            row, created = feedback.report(db, self._names, report, self._redact)
            if created:
                about, who = len(row.references), audit.named(row.id)
                facts = {"id": who, "scenario": row.scenario, "score": row.score, "about": about}
                audit.add(db, "feedback", facts)
            return row, created

        return self._submit(lambda: feedback.check(report), apply)

    def undo(self, scenario: str | None, receipt: str | None, report: str | None = None) -> "Future[ReportRow]":
        """Take back the last report that stands, or the one named. Fails with NotFound."""

        def apply(db: sqlite3.Connection) -> ReportRow:
            row = feedback.undo(db, self._names, scenario, receipt, report=report)
            audit.add(db, "undo", {"id": audit.named(row.id), "scenario": row.scenario})
            return row

        return self._transact(apply)

    def pin(self, sessions: Sequence[str], *, pinned: bool) -> "Future[tuple[str, ...]]":
        """Pin sessions as golden or take the pins back, all or none; those that were not so. Fails with NotFound."""
        return self._transact(lambda db: pins.pin(db, sessions, pinned=pinned))

    def add_tasks(self, new: Sequence[Task]) -> "Future[list[tuple[Task, bool]]]":
        """Store all or none; each as it is kept, and whether it is new. Fails with Conflict."""
        return self._transact(lambda db: tasks.add(db, self._names, new, self._redact))

    def remove_task(self, id: str) -> "Future[Task]":
        """Fails with NotFound."""
        return self._transact(lambda db: tasks.remove(db, self._names, id))

    def waiting(self) -> int:
        """About how many writes wait for the disk."""
        return self._writer.waiting()

    def close(self) -> None:
        """Commit what waits and close. Whatever comes later fails with StoreError."""
        self._writer.close()
        self._pool.close()

    # -- reading ------------------------------------------------------------------------------------

    # Each as its function says. Those that hide a module's name come last.
    sessions_by = reading(orders.ordered)
    sessions_named = reading(sessions.named)
    session = reading(sessions.session)
    record = reading(records.record)
    place = reading(records.place)
    request = reading(requests.request)
    response = reading(requests.response)
    span = reading(spans.span)
    signals_on = reading(signals.signals_on)
    messages = reading(requests.messages)
    new_messages = reading(requests.new_messages)
    compared = reading(compare.compared)
    answer = reading(requests.answer)
    reports_on = reading(feedback.reports_on)
    words = reading(said.said)
    last = reading(records.last)
    last_of_run = reading(records.last_of_run)
    last_under = reading(records.last_under)
    knows = reading(records.knows)
    task_page = reading(tasks.task_page)
    sessions = reading(sessions.sessions)
    records = reading(records.records)
    search = reading(search.search)
    tasks = reading(tasks.tasks)
    rollups = reading(rollups.rollups)
    verify = reading(verify.verify)

    def sessions_with(
        self, query: Query, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> tuple[list[SessionRow], str | None]:
        """Sessions with such records, by their newest one, which is their ``seq`` here: latest first (with ``after``:
        oldest first), with the cursor of the next page. A page may be short and have a next one."""
        with self._pool.reader() as reader:
            found, cursor = search.sessions_with(reader, query, limit, before=before, after=after)
            return [sessions.placed(reader, id, seq) for id, seq in found], cursor

    def expected(self, exchange: Exchange, parse: Callable[[], Transcript]) -> str | None:
        """The id of the session that `append` would put it in as things stand; None where that would be a new one."""
        return self._pool.read(expected.session, prepare(exchange, parse, self._redact))

    def above(self, exchange: Exchange, parse: Callable[[], Transcript]) -> Above:
        """Which answer stands above an exchange that is not stored."""
        return self._pool.read(expected.above, prepare(exchange, parse, self._redact))

    def kept_aside(self) -> list[Path]:
        """Damaged databases that were replaced and are still there, oldest first."""
        return opening.kept_aside(self._path)

    def counts(self) -> dict[str, int]:
        with self._pool.reader() as reader:
            row = reader.db.execute("SELECT records, sessions, reports FROM tally").fetchone()
        return dict(zip(("records", "sessions", "reports"), row, strict=True))

    # -- the writer's thread ------------------------------------------------------------------------

    def _submit(
        self,
        prepare: Callable[[], Any],
        apply: Callable[[sqlite3.Connection, Any], Any],
        fallback: Callable[[sqlite3.Connection, Exception], Any] | None = None,
    ) -> "Future[Any]":
        future: Future[Any] = Future()
        self._writer.submit(Job(prepare, apply, future, fallback))
        return future

    def _transact(self, apply: Callable[[sqlite3.Connection], Any]) -> "Future[Any]":
        return self._submit(lambda: None, lambda db, _: apply(db))

    def _alone(self, apply: Callable[[sqlite3.Connection], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        self._writer.submit(Job(lambda: None, lambda db, _: apply(db), future, alone=True))
        return future

    def _damaged(self, db: sqlite3.Connection, error: sqlite3.Error) -> sqlite3.Connection:
        """Another database in the place of one that turned out damaged; seqs go on from where they were."""
        db.close()
        new = opening.anew(self._path, self._durability, error)
        new.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('record', ?)", (self._last_seq,))
        self._rolled_back()
        self._pool.renew()
        return new

    def _committed(self, results: list[Any]) -> None:
        listed = (result if isinstance(result, list) else [result] for result in results)
        appended = [one for many in listed for one in many if isinstance(one, Appended)]
        self._last_seq = max((one.seq for one in appended), default=self._last_seq)
        if appended and self.on_commit is not None:
            self.on_commit(appended)

    def _rolled_back(self) -> None:
        self._names.forget()
        self._ledger.forget()

    def _idle(self, db: sqlite3.Connection) -> bool:
        with self._pool.reader() as reader:
            return afterwards.catch_up(db, reader, self._read, self._ledger.unread) == afterwards.BATCH
