"""The one thread that writes: all that waits goes into one transaction, and futures resolve after its COMMIT.

A job may fail alone (its own error), with its batch (the disk is full, someone holds the lock: StoreError, and the next
batch tries again), never take the thread down. Nothing here knows what a job writes.
"""

import contextlib
import logging
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from daemon.core.errors import ReefError, StoreError
from daemon.store.checkpoint import Checkpointer
from daemon.store.connection import explain, is_damaged, is_locked, is_outside

_log = logging.getLogger(__name__)

_BATCH: Final = 256
#: How long a batch waits for another process's lock before its futures fail.
_PATIENCE_SECONDS: Final = 5.0
#: Quiet time before idle work: it must not compete with a burst's next commit.
_IDLE_SECONDS: Final = 0.2
#: Under a load without any, idle work gets a moment between two commits all the same, this often.
_IDLE_LATEST: Final = 2.0


@dataclass(frozen=True, slots=True)
class Job:
    """``prepare`` runs before the transaction, ``apply`` inside it with what prepare gave.

    ``apply`` raises ReefError only before it wrote anything. ``fallback`` is applied, alone, where ``apply`` failed
    in any other way.
    """

    prepare: Callable[[], Any]
    apply: Callable[[sqlite3.Connection, Any], Any]
    future: "Future[Any]"
    fallback: Callable[[sqlite3.Connection, Exception], Any] | None = None
    #: Not in a transaction: for what SQLite does outside of one only.
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the writer calls: before a commit, after commits with the results, after rollbacks, when idle (True: there
    is more to do), and for another connection where the database turned out damaged (raises StoreError)."""

    committing: Callable[[sqlite3.Connection], None]
    committed: Callable[[list[Any]], None]
    rolled_back: Callable[[], None]
    idle: Callable[[sqlite3.Connection], bool]
    damaged: Callable[[sqlite3.Connection, sqlite3.Error], sqlite3.Connection]


@dataclass(slots=True)
class _Patience:
    """Of one batch: until when it waits for a lock, and whether it was given another database already."""

    deadline: float
    replaced: bool = False


_Outcome = tuple[Job, Any, Exception | None]


class Writer:
    """Owns the writing connection from here on."""

    def __init__(self, db: sqlite3.Connection, path: Path, hooks: Hooks) -> None:
        self._db = db
        self._path = path
        self._hooks = hooks
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._more_idle = True
        self._idle_due = time.monotonic() + _IDLE_LATEST
        #: The database was damaged, and there is no other yet.
        self._lost = False
        self._checkpointer = Checkpointer(path)
        self._thread = threading.Thread(target=self._run, name="reef-store", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Returns at once. The job's future can't be cancelled: what was submitted is written."""
        job.future.set_running_or_notify_cancel()
        with self._lock:
            if not self._closed:
                self._queue.put(job)
                return
        job.future.set_exception(StoreError("the store is closed"))

    def waiting(self) -> int:
        """About how many jobs nobody has taken up yet."""
        return self._queue.qsize()

    def close(self) -> None:
        """Write what waits, then stop."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self._checkpointer.close()
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    def _run(self) -> None:
        open_ = True
        while open_:
            jobs, open_ = self._take()
            if jobs:
                self._write([(job, *self._prepared(job)) for job in jobs if not job.alone])
                for job in jobs:
                    if job.alone:
                        self._alone(job)
                self._more_idle = True
            if open_ and (not jobs or time.monotonic() > self._idle_due):
                self._idle()

    def _take(self) -> tuple[list[Job], bool]:
        """All that waits, at most a batch; nothing after a quiet moment. False: closing, and all is taken."""
        jobs: list[Job] = []
        try:
            job = self._queue.get(timeout=_IDLE_SECONDS if self._more_idle else None)
            while job is not None:
                jobs.append(job)
                if len(jobs) == _BATCH:
                    return jobs, True
                job = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    @staticmethod
    def _prepared(job: Job) -> tuple[Any, Exception | None]:
        try:
            return job.prepare(), None
        except Exception as error:
            return None, error

    def _write(self, prepared: list[_Outcome]) -> None:
        for job, _, error in prepared:
            if error is not None:
                job.future.set_exception(error)
        todo = [item for item in prepared if item[2] is None]
        if not todo:
            return
        patience = _Patience(time.monotonic() + _PATIENCE_SECONDS)
        while True:
            try:
                self._settle(self._transaction(todo))
                return
            except sqlite3.Error as error:
                self._roll_back()
                if not self._again(todo, error, patience):
                    return
            except Exception as error:
                self._roll_back()
                self._apart(todo, error)
                return

    def _again(self, todo: list[_Outcome], error: sqlite3.Error, patience: "_Patience") -> bool:
        """Whether to try once more; where not, what was to be written has its error."""
        if not patience.replaced and (self._lost or is_damaged(error)):
            patience.replaced = True
            trouble = self._replace(error)
            if trouble is not None:
                self._fail(todo, trouble)
            return trouble is None
        if is_locked(error) and time.monotonic() < patience.deadline:
            time.sleep(random.uniform(0.005, 0.02))
            return True
        if is_outside(error):
            self._fail(todo, explain(error, self._path))
        else:
            self._apart(todo, error)
        return False

    def _transaction(self, todo: list[_Outcome]) -> list[_Outcome]:
        self._db.execute("BEGIN IMMEDIATE")
        done: list[_Outcome] = []
        for job, value, _ in todo:
            try:
                done.append((job, job.apply(self._db, value), None))
            except ReefError as error:
                done.append((job, None, error))
        self._hooks.committing(self._db)
        self._db.execute("COMMIT")
        return done

    def _settle(self, done: list[_Outcome]) -> None:
        for job, result, error in done:
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)
        try:
            self._hooks.committed([result for _, result, error in done if error is None])
        except Exception:
            _log.exception("what listens to the store failed")
        self._checkpointer.after_commit(self._db)

    def _apart(self, todo: list[_Outcome], error: Exception) -> None:
        """One of them broke the transaction: each on its own, so that the others are kept."""
        if len(todo) > 1:
            for item in todo:
                self._write([item])
            return
        job, _, _ = todo[0]
        if job.fallback is None:
            self._fail(todo, error)
            return
        fallback, cause = job.fallback, error
        _log.error("a record could not be written as it is, it is kept unsplit", exc_info=cause)
        retry = Job(lambda: None, lambda db, _: fallback(db, cause), job.future)
        self._write([(retry, None, None)])

    def _fail(self, todo: list[_Outcome], error: Exception) -> None:
        reason = explain(error, self._path) if isinstance(error, sqlite3.Error) else error
        if not isinstance(reason, ReefError):
            reason = StoreError(f"cannot be stored: {type(error).__name__}: {error}")
        for job, _, _ in todo:
            job.future.set_exception(reason)

    def _alone(self, job: Job) -> None:
        try:
            job.future.set_result(job.apply(self._db, None))
        except Exception as error:
            self._fail([(job, None, None)], error)

    def _replace(self, error: sqlite3.Error) -> StoreError | None:
        """Go on with another database; what was in the way where that failed, and the next write tries again."""
        self._lost = True
        self._checkpointer.close()
        try:
            self._db = self._hooks.damaged(self._db, error)
        except StoreError as trouble:
            return trouble
        self._checkpointer = Checkpointer(self._path)
        self._lost = False
        return None

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        self._hooks.rolled_back()

    def _idle(self) -> None:
        self._idle_due = time.monotonic() + _IDLE_LATEST
        try:
            while self._more_idle and self._queue.empty():
                self._db.execute("BEGIN IMMEDIATE")
                self._more_idle = self._hooks.idle(self._db)
                self._db.execute("COMMIT")
                self._checkpointer.after_commit(self._db)
        except Exception as error:
            self._roll_back()
            self._more_idle = False  # tried again after the next record
            _log.warning("the search index waits: %s", error)
