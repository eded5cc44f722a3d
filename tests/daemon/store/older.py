"""A store as an older version of the program would have left it: later tables and indexes are taken away again."""

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
    plain.close()
    db = sqlite3.connect(path)
    for kind in ("index", "table"):
        found = db.execute("SELECT name FROM sqlite_master WHERE type = ? AND sql IS NOT NULL", (kind,)).fetchall()
        for (name,) in found:
            if name not in known:
                db.execute(f"DROP {kind} {name}")
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    for name, sql in known.items():
        if name not in there:
            db.execute(sql)
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()
