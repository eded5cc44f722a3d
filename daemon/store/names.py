"""Words that repeat in every record, kept once: scenarios, agents, engines, models, releases, weights."""

import sqlite3


class Names:
    """Both directions, remembered. The writer's own one must `forget` after a rollback; ids are never reused or
    changed."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}

    def id(self, db: sqlite3.Connection, text: str) -> int:
        """The id of ``text``, made when it is new. Only inside the writer's transaction."""
        known = self._ids.get(text)
        if known is None:
            found = self.find(db, text)
            known = found if found is not None else _last_id(db.execute("INSERT INTO name (text) VALUES (?)", (text,)))
            self._ids[text] = known
        return known

    def optional_id(self, db: sqlite3.Connection, text: str | None) -> int | None:
        return None if text is None else self.id(db, text)

    def find(self, db: sqlite3.Connection, text: str) -> int | None:
        """The id of ``text``, or None when nothing was ever recorded under it."""
        row = db.execute("SELECT id FROM name WHERE text = ?", (text,)).fetchone()
        return None if row is None else int(row[0])

    def text(self, db: sqlite3.Connection, id: int) -> str:
        known = self._texts.get(id)
        if known is None:
            known = self._texts[id] = str(db.execute("SELECT text FROM name WHERE id = ?", (id,)).fetchone()[0])
        return known

    def optional_text(self, db: sqlite3.Connection, id: int | None) -> str | None:
        return None if id is None else self.text(db, id)

    def forget(self) -> None:
        self._ids.clear()
        self._texts.clear()


def _last_id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid
