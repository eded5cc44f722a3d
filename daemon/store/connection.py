"""SQLite connections: how they are opened, who may share them, and what their errors mean to a person.

One connection writes; readers have their own, read-only, and WAL lets neither wait for the other. Automatic
checkpoints are off everywhere: an fsync of the database must never fall into a commit that an agent waits for
(`daemon.store.checkpoint`).
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from daemon.core.errors import StoreError
from daemon.store.names import Names
from daemon.store.packing import Packer

Durability = Literal["full", "normal"]
_P = ParamSpec("_P")
_T = TypeVar("_T")

#: How long one statement waits for a lock that another process holds. The writer tries again after it.
BUSY_SECONDS: Final = 1.0
#: -wal shrinks to this when it starts over.
_WAL_LIMIT: Final = 16 << 20
_POOL: Final = 4
#: Of a new database. A record touches 28 pages here and there, and each is written whole: a third of the bytes that
#: pages of 4096 take, and a session is a fifth smaller.
_PAGE: Final = 1024
#: Values in one statement: SQLite takes 999 everywhere.
_VALUES: Final = 900
#: Less free space than this explains a failed write.
_FULL_BYTES: Final = 1 << 20


def open_writer(path: Path, durability: Durability) -> sqlite3.Connection:
    """The one connection that writes. The file is 0600 from its first moment; SQLite gives -wal and -shm the same
    mode."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)
    db = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        db.execute(f"PRAGMA page_size = {_PAGE}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        db.execute("PRAGMA cache_size = -16000")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA secure_delete = ON")  # what is forgotten leaves no bytes behind
    except BaseException:
        db.close()
        raise
    return db


class Reader:
    """A read-only connection with what decodes its rows. Used by one thread at a time."""

    def __init__(self, path: Path, names: Names) -> None:
        self.db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        self.db.execute("PRAGMA query_only = ON")
        self.db.execute("PRAGMA cache_size = -8000")
        self.packer = Packer()
        self.names = names


class Pool:
    """A few readers, lent one thread at a time; more are made while more threads read, and closed when they come
    back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = Names()
        self._idle: SimpleQueue[Reader] = SimpleQueue()
        self._open = True

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Raises StoreError for whatever SQLite says meanwhile."""
        if not self._open:
            raise StoreError("the store is closed")
        try:
            try:
                reader = self._idle.get_nowait()
            except Empty:
                reader = Reader(self._path, self._names)
            try:
                reader.db.execute("BEGIN")  # one moment for all that is read: records may be forgotten meanwhile
                yield reader
            finally:
                reader.db.rollback()
                if self._open and reader.names is self._names and self._idle.qsize() < _POOL:
                    self._idle.put(reader)
                else:
                    reader.db.close()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error

    def read(self, question: Callable[Concatenate[Reader, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """One question to a reader. Raises as `reader` does."""
        with self.reader() as reader:
            return question(reader, *args, **kwargs)

    def renew(self) -> None:
        """Another database has the path now: readers of the one before are closed, or are when they come back."""
        self._names = Names()
        self._drain()

    def close(self) -> None:
        self._open = False
        self._drain()

    def _drain(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().db.close()


def reading(question: Callable[Concatenate[Reader, _P], _T]) -> Callable[Concatenate[Any, _P], _T]:
    """A method that puts one question to a reader of its object's ``_pool``. Raises as `Pool.reader` does."""

    def asked(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        pool: Pool = self._pool
        return pool.read(question, *args, **kwargs)

    return asked


def marks(values: Sized) -> str:
    """What stands for them in SQL's ``IN``."""
    return ",".join("?" * len(values))


def in_parts(values: Sequence[_T]) -> Iterator[tuple[Sequence[_T], str]]:
    """As many as one statement takes at once, with their `marks`."""
    for start in range(0, len(values), _VALUES):
        part = values[start : start + _VALUES]
        yield part, marks(part)


def is_locked(error: sqlite3.Error) -> bool:
    """Another process holds the lock: trying again may help."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_outside(error: sqlite3.Error) -> bool:
    """The disk, its owner or another process is to blame, not what was to be written."""
    return is_locked(error) or _code(error) in (
        sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
    )  # fmt: skip


def is_damaged(error: sqlite3.Error) -> bool:
    """The file itself is wrong, not the disk, its owner or another process."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """What happened in words, with the next thing to do. A full disk is never reported as damage."""
    code = _code(error)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or (code == sqlite3.SQLITE_IOERR and _is_sealed(path)):
        return StoreError(
            f"{path} is read-only", hint=f"ls -l {path.parent}: make it writable; recording goes on by itself"
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _free_bytes(path) < _FULL_BYTES):
        return StoreError(f"the disk of {path.parent} is full", hint="free some space: recording goes on by itself")
    if is_locked(error):
        return StoreError(f"another process keeps {path} locked", hint=f"fuser -v {path}")
    if is_damaged(error):
        return StoreError(f"{path} is damaged: {error}", hint="reef doctor")
    return StoreError(f"cannot use {path}: {error}", hint="reef doctor")


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 where Python, not SQLite, raised."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _free_bytes(path: Path) -> int:
    try:
        status = os.statvfs(path.parent)
    except OSError:
        return _FULL_BYTES
    return status.f_bavail * status.f_frsize


def _is_sealed(path: Path) -> bool:
    """Whether the file system takes no writes any more: after an error the kernel mounts it so."""
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False
