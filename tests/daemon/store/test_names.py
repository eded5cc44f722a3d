"""Names, both ways."""

import sqlite3

from daemon.store.names import Names


def test_names_are_kept_once_and_forgotten_after_a_rollback() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)")
    names = Names()
    db.execute("BEGIN")
    first = names.id(db, "pi")
    assert names.id(db, "pi") == first
    assert names.text(db, first) == "pi"
    db.execute("ROLLBACK")
    names.forget()
    assert names.find(db, "pi") is None
    other = names.id(db, "codex")
    assert (other, names.text(db, other)) == (first, "codex")
    assert (names.optional_id(db, None), names.optional_text(db, None)) == (None, None)
