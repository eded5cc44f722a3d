"""Homes with a thousand records or a million, made once and kept in the cache folder.

The store's own writer makes the first thousand, each a session of its own; SQL copies their rows in ``record`` and
``session``, which is what lists read. Bodies stay those of the first thousand, and the full-text index is empty.
"""

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from bench.queries import varied
from bench.store import Turn, message, turn, wait_for_index
from daemon.core.paths import Home
from daemon.store.db import Store
from daemon.store.migrations import STEPS

_FIRST: Final = 1000


def home(records: int) -> Home:
    """A home with so many records, each a row of the list, the newest one titled ``the newest of them``."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reef" / "bench"
    made = Home(cache / f"records-{records}-schema-{len(STEPS)}")
    if not (made.root / "complete").exists():
        shutil.rmtree(made.root, ignore_errors=True)
        made.prepare()
        made.config.write_text("server: {port: 0}\n")
        _fill(made.database, records)
        (made.root / "complete").touch()
    return made


def _fill(path: Path, records: int) -> None:
    store = Store.open(path, durability="normal")
    for number in range(_FIRST):
        title = "the newest of them" if number == _FIRST - 1 else f"task {number}: why does test {number} fail?"
        answer = message("assistant", f"answer {number}")
        one = turn([message("system", "You help."), message("user", title)], answer, b'],"stream":true}', number)
        one = Turn(varied(one.exchange, number, _FIRST), one.transcript)
        store.append(one.exchange, lambda one=one: one.transcript).result()  # type: ignore[misc]
    wait_for_index(store, path, _FIRST)
    store.close()
    db = sqlite3.connect(path)
    _multiply(db, records - _FIRST)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def _multiply(db: sqlite3.Connection, older: int) -> None:
    """Put ``older`` records before those that are there, whose places in all orders move up by as many."""
    if not older:
        return
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("PRAGMA synchronous = OFF")
    for table, key in (("session", "id"), ("record", "seq"), ("request", "seq"), ("response", "seq"), ("point", "seq")):
        db.execute(f"UPDATE {table} SET {key} = -{key} - {older}")
        db.execute(f"UPDATE {table} SET {key} = -{key}")
    moved = f"{{0}} = {{0}} + {older}"
    names = ("updated_seq", "main_seq", "answer_seq", "parent")
    db.execute(f"UPDATE session SET {', '.join(moved.format(name) for name in names)}")
    db.execute(f"UPDATE record SET {', '.join(moved.format(name) for name in ('session', 'parent', 'retry_of'))}")
    db.execute(f"UPDATE request SET {moved.format('base')}")
    db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    db.execute(f"UPDATE session_key SET {moved.format('session')}")
    db.execute(f"UPDATE answer_id SET {moved.format('seq')}")
    new = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {older})"
    apart = f"({older} - i) * 1000000"
    _copy(db, new, "session", {
        "id": "i", "uid": "printf('ses_%026d', i)", "updated_seq": "i", "main_seq": "i", "answer_seq": "i",
        "key": "NULL", "parent": "NULL",
        "created_ns": f"s.created_ns - {apart}", "updated_ns": f"s.updated_ns - {apart}",
    })  # fmt: skip
    _copy(db, new, "record", {
        "seq": "i", "receipt": "printf('rec_%026d', i)", "session": "i", "parent": "NULL", "retry_of": "NULL",
        "started_ns": f"s.started_ns - {apart}",
    })  # fmt: skip
    total = older + _FIRST
    db.execute(f"UPDATE tally SET records = {total}, sessions = {total}, indexed = {total}")
    db.execute("DELETE FROM hour")
    db.execute("INSERT INTO hour SELECT started_ns / 3600000000000, min(seq), max(seq) FROM record GROUP BY 1")
    db.execute("UPDATE sqlite_sequence SET seq = (SELECT max(seq) FROM record) WHERE name = 'record'")
    db.commit()


def _copy(db: sqlite3.Connection, new: str, table: str, changed: dict[str, str]) -> None:
    """A row for each ``i`` of ``new``, in all else a copy of one of the thousand."""
    key = next(iter(changed))
    columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(name, f's."{name}"') for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    (last,) = db.execute(f"SELECT max({key}) FROM {table}").fetchone()
    db.execute(
        f"INSERT INTO {table} ({names}) {new} SELECT {values} FROM n JOIN {table} s ON s.{key} = {last} - i % {_FIRST}"
    )
