"""The schema, one numbered step a file. A step that has shipped is never edited: the next one changes what it made.

Each step is applied in its own transaction together with the new ``user_version``, so a crash leaves a whole schema
behind.
"""

import importlib
import sqlite3
from typing import Final

from daemon.core.errors import StoreError

STEPS: Final = (
    "m0001_first_light", "m0002_learning", "m0003_tasks", "m0004_experience", "m0005_privacy", "m0006_fewer_indexes",
    "m0007_unspaced", "m0008_cost", "m0009_orders", "m0010_pins", "m0011_dirty",
)  # fmt: skip


def migrate(db: sqlite3.Connection) -> None:
    """Bring ``db`` to the newest schema. Raises StoreError when it is newer than this program knows."""
    version = _version(db)
    if version > len(STEPS):
        raise StoreError(
            f"the store has schema {version}, this version of reef knows {len(STEPS)}",
            hint="upgrade reef: the store was last opened by a newer version",
        )
    for number, step in enumerate(STEPS[version:], start=version + 1):
        statements: tuple[str, ...] = importlib.import_module(f"{__name__}.{step}").STATEMENTS
        db.execute("BEGIN IMMEDIATE")
        try:
            if _version(db) < number:  # another process may have been first
                for statement in statements:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk has ended it
                db.execute("ROLLBACK")
            raise


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version
