"""The full-text index: one document a record, holding what that record added to its conversation."""

from collections.abc import Sequence

from daemon.store import messages as content
from daemon.store.connection import Reader
from daemon.store.requests import message_ids


def added(reader: Reader, words: Sequence[str], limit: int) -> list[tuple[str, bytes]]:
    """Dialect and bytes of what the newest ``limit`` records added that hold all ``words`` (letters and digits alone),
    and of those that are not indexed yet. In which order the words come is for the caller to see.
    """
    found = reader.db.execute(
        """SELECT rowid FROM words WHERE words MATCH ?
        UNION SELECT seq FROM request WHERE seq > (SELECT indexed FROM tally) ORDER BY 1 DESC LIMIT ?""",
        (" AND ".join(f'"{word}"' for word in words), limit),
    ).fetchall()
    said: list[tuple[str, bytes]] = []
    for (seq,) in found:
        dialect, seen = reader.db.execute(
            "SELECT r.dialect, q.seen FROM record r JOIN request q ON q.seq = r.seq WHERE r.seq = ?", (seq,)
        ).fetchone()
        said += [(dialect, raw) for raw in content.raws(reader, message_ids(reader.db, seq)[seen:])]
    return said
