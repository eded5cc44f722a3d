"""Opening the database. A damaged one is kept aside under another name, never written to or deleted again, and a new
one takes its place.

Nothing is rescued out of it unasked: rows that can still be read may hang on others that cannot. ``sqlite3 FILE
.recover`` reads what there is.
"""

import logging
import sqlite3
import time
from pathlib import Path
from typing import Final

from daemon.core.errors import StoreError
from daemon.store.connection import Durability, explain, is_damaged, open_writer
from daemon.store.migrations import migrate

_log = logging.getLogger(__name__)

_MARK: Final = ".damaged-"
#: What a start looks at: the ends that the next record is written to.
_ENDS: Final = (
    "SELECT records, sessions, reports, indexed FROM tally",
    "SELECT max(seq) FROM record",
    "SELECT max(seq) FROM request",
    "SELECT max(id) FROM message",
    "SELECT max(id) FROM frame",
    "SELECT max(id) FROM session",
    "SELECT max(id) FROM report",
)


def opened(path: Path, durability: Durability) -> sqlite3.Connection:
    """The writing connection, on the newest schema; a damaged file is set aside first. Raises StoreError."""
    try:
        return _open(path, durability)
    except sqlite3.Error as error:
        if not is_damaged(error):
            raise explain(error, path) from error
        return anew(path, durability, error)


def anew(path: Path, durability: Durability, found: sqlite3.Error) -> sqlite3.Connection:
    """Set a damaged database aside and start a new one. Raises StoreError."""
    try:
        aside = set_aside(path)
        db = _open(path, durability)
    except sqlite3.Error as error:
        raise explain(error, path) from error
    except OSError as error:
        raise StoreError(f"{path} is damaged and cannot be set aside: {error.strerror}", hint="reef doctor") from error
    _log.error("%s was damaged (%s): it is kept as %s, and a new one is started", path, found, aside.name)
    return db


def _open(path: Path, durability: Durability) -> sqlite3.Connection:
    try:
        db = open_writer(path, durability)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="reef doctor") from error
    try:
        migrate(db)
        for sql in _ENDS:  # milliseconds, not a full check
            db.execute(sql).fetchone()
    except BaseException:
        db.close()
        raise
    return db


def set_aside(path: Path) -> Path:
    """Rename a database and what SQLite keeps beside it; returns its new name. Raises OSError."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}{_MARK}{stamp}")
    for number in range(1, 100):
        if not aside.exists():
            break
        aside = path.with_name(f"{path.name}{_MARK}{stamp}-{number}")
    for suffix in ("-wal", "-shm", ""):  # the database last: while it is there, a start tries again
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    return aside


def kept_aside(path: Path) -> list[Path]:
    """The databases that were set aside here and are still there, oldest first."""
    found = path.parent.glob(f"{path.name}{_MARK}*")
    return sorted(one for one in found if not one.name.endswith(("-wal", "-shm")))
