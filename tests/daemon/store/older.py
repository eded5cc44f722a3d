"""A store as an older version of the program would have left it: what later ones added is taken away again."""

import sqlite3
from importlib import import_module
from pathlib import Path

from daemon.store.migrations import STEPS


def downgraded(path: Path, version: int) -> None:
    """Take back every step after ``version``. Steps add and drop only what has a name of its own."""
    plain = sqlite3.connect(":memory:")
    for step in STEPS[:version]:
        for statement in import_module(f"daemon.store.migrations.{step}").STATEMENTS:
            plain.execute(statement)
    known = dict(plain.execute("SELECT name, sql FROM sqlite_master"))
    columns = {name: _columns(plain, name) for name, sql in known.items() if sql and sql.startswith("CREATE TABLE")}
    plain.close()
    db = sqlite3.connect(path)
    for kind in ("index", "table"):
        if kind == "table":
            for table, there in columns.items():
                _narrow(db, table, there)
        found = db.execute("SELECT name FROM sqlite_master WHERE type = ? AND sql IS NOT NULL", (kind,)).fetchall()
        for (name,) in found:
            if name not in known:
                db.execute(f"DROP {kind} {name}")
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    for name, sql in known.items():
        if name not in names:
            db.execute(sql)
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def _narrow(db: sqlite3.Connection, table: str, kept: list[str]) -> None:
    for column in _columns(db, table):
        if column not in kept:
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
