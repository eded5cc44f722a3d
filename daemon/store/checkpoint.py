"""Moving the write-ahead log into the database, off the writer's way.

A thread of its own does passive checkpoints, which wait for nobody. Under a load that never pauses those never let the
log start over, so past a bound the writer itself waits for one; what is left to copy is little by then.
"""

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Final

from daemon.store.connection import BUSY_SECONDS

#: -wal sizes: from here the thread copies; from here the writer makes the log start over.
_COPY: Final = 4 << 20
_RESTART: Final = 32 << 20
#: Between two copies. The log keeps its size when it starts over, so that alone would ask for one after each commit.
_REST_SECONDS: Final = 0.25
#: The writer's longest wait for other processes' readers before it goes on with a longer log.
_RESTART_WAIT_MS: Final = 50
#: After a try that readers blocked, the log grows this much before the next.
_BACKOFF: Final = 16 << 20


class Checkpointer:
    """Owned by the writer; `after_commit` is called in its thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._restart_at = _RESTART
        self._thread = threading.Thread(target=self._run, name="reef-checkpoint", daemon=True)
        self._thread.start()

    def after_commit(self, db: sqlite3.Connection) -> None:
        size = self._size()
        if size >= self._restart_at:
            self._restart(db, size)
        elif size >= _COPY:
            self._wake.set()

    def close(self) -> None:
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _restart(self, db: sqlite3.Connection, size: int) -> None:
        db.execute(f"PRAGMA busy_timeout = {_RESTART_WAIT_MS}")
        try:
            blocked = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error:
            blocked = 1
        finally:
            db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        self._restart_at = size + _BACKOFF if blocked else _RESTART

    def _run(self) -> None:
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            while True:
                self._wake.wait()
                self._wake.clear()
                if self._closing.is_set():
                    return
                with contextlib.suppress(sqlite3.Error):  # full or locked: the next commit asks again
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._closing.wait(_REST_SECONDS)
        finally:
            db.close()

    def _size(self) -> int:
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0
