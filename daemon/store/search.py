"""Finding records, newest first, in pages that cost the same wherever they lie.

One index is walked, the one that a query narrows down most; whatever else it asks is checked on the records there, a
bounded number of them a page. So a page may be short, or empty, and still have a next one: never slow. The full-text
index has one document a record: what that record added to its conversation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from daemon.core.rows import Hit, SearchPage
from daemon.store import messages as content
from daemon.store import records, rollups, unspaced
from daemon.store.connection import Reader, marks
from daemon.store.pages import cursor_value, page_size
from daemon.store.query import Field, Query
from daemon.store.requests import new_ids
from daemon.store.snippets import snippets

#: Records looked at in one go, and in one page.
_WINDOW: Final = 900
_WINDOWS: Final = 3
#: Records whose text is read in a page that asks for a phrase, and that are looked up in the index one by one.
_READ: Final = 60
_LOOKED_UP: Final = 90
_LAST: Final = 1 << 62

#: The sessions whose id begins so; lists show beginnings. More of them are no name.
_NAMED: Final = "(SELECT id FROM session WHERE uid >= ? AND uid < ? LIMIT 50)"
#: Letters of a whole id.
_WHOLE: Final = 30
#: Where a field can be walked: one value of it, newest first.
_WALKS: Final = {
    "session": "SELECT seq FROM record WHERE session = (SELECT id FROM session WHERE uid = ?)",
    "kind": "SELECT seq FROM record WHERE kind <> 'main' AND kind = ?",
    "signal": "SELECT DISTINCT seq FROM signal WHERE name = ?",
    "model": "SELECT seq FROM record WHERE model_asked = (SELECT id FROM name WHERE text = ?)",
    "agent": "SELECT seq FROM record WHERE agent = (SELECT id FROM name WHERE text = ?)",
    "scenario": "SELECT seq FROM record WHERE scenario = (SELECT id FROM name WHERE text = ?)",
}
#: A report that was not taken back.
_STANDS: Final = "EXISTS (SELECT 1 FROM report p WHERE p.id = f.report AND p.undone_ns IS NULL)"
_HAS_WALKS: Final = {
    "feedback": f"SELECT DISTINCT seq FROM reference f WHERE {_STANDS}",
    "error": """SELECT seq FROM record INDEXED BY record_failed WHERE "end" <> 'ok'""",
}
#: Which index is walked first.
_RANKS: Final = (
    "session", "has:feedback", "status", "has:error", "kind", "signal", "model", "agent", "scenario"
)  # fmt: skip
_CHECKS: Final = {
    "session": f"r.session IN {_NAMED}",
    "signal": "EXISTS (SELECT 1 FROM signal g WHERE g.name = ? AND g.seq = r.seq)",
    "model": "r.model_asked IN (SELECT id FROM name WHERE text = ?)",
    "agent": "coalesce(r.agent, 0) IN (SELECT id FROM name WHERE text = ?)",
    "scenario": "r.scenario IN (SELECT id FROM name WHERE text = ?)",
    "release": "r.release_id IN (SELECT id FROM name WHERE text = ?)",
    "kind": "r.kind = ?",
}
_HAS: Final = {
    "feedback": f"EXISTS (SELECT 1 FROM reference f WHERE f.seq = r.seq AND {_STANDS})",
    "signal": "EXISTS (SELECT 1 FROM signal g WHERE g.seq = r.seq)",
    "error": """r."end" <> 'ok'""",
    "tools": "r.tools > 0",
    "secret": "r.redacted > 0",
}


@dataclass(frozen=True, slots=True)
class _Walk:
    """The index to walk, with what it answers of the query already."""

    sql: str
    values: tuple[object, ...]
    done: Field | None = None
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class _Window:
    """What fits among the records looked at in one go, newest first, down to ``floor``; ``last``: none lie below."""

    seqs: list[int]
    floor: int
    last: bool


def search(reader: Reader, query: Query, limit: int, before: str | None) -> SearchPage:
    """A page of records, newest first, with the cursor of the next one (None: there is none)."""
    size, cursor, found = page_size(limit), None, list[Hit]()
    for window in _windows(reader, query, _start(before), want=size):
        room = size - len(found)
        part = window.seqs[: _READ if query.phrases else room]
        lines = snippets(reader, part, query) if query.words else dict.fromkeys(part)
        fit = [seq for seq in part if not query.phrases or lines[seq] is not None][:room]
        found += [Hit(records.by_seq(reader, seq), lines[seq]) for seq in fit]
        if len(fit) == room or len(part) < len(window.seqs):
            floor = fit[-1] if len(fit) == room else part[-1]
            cursor = None if window.last and floor == window.seqs[-1] else floor
            break
        cursor = None if window.last else window.floor
    mark, last = reader.db.execute("SELECT indexed, (SELECT max(seq) FROM record) FROM tally").fetchone()
    unindexed = max(0, (last or 0) - mark) if query.words else 0
    return SearchPage(tuple(found), None if cursor is None else str(cursor), unindexed)


def sessions_with(reader: Reader, query: Query, limit: int, before: str | None) -> tuple[list[str], str | None]:
    """The sessions that have such records, by their newest one; with the cursor of the next page."""
    size, start, cursor = page_size(limit), _start(before), None
    found: list[str] = []
    seen: set[int] = set()
    for window in _windows(reader, query, start, want=_WINDOW):
        seqs = window.seqs
        if query.phrases:
            lines = snippets(reader, seqs[:_READ], query)
            seqs = [seq for seq, line in lines.items() if line is not None]
        for seq, id, uid, updated in _sessions_of(reader, seqs):
            if id in seen:
                continue
            if len(found) == size:
                return found, str(seq + 1)
            seen.add(id)
            # One that moved since may have been on the page before, by a newer record.
            if updated < start or not _has_from(reader, query, uid, start):
                found.append(uid)
        if query.phrases and len(window.seqs) > _READ:
            return found, str(window.seqs[_READ - 1])
        cursor = None if window.last else str(window.floor)
    return found, cursor


def _start(before: str | None) -> int:
    return _LAST if before is None else cursor_value(before)


def _sessions_of(reader: Reader, seqs: list[int]) -> list[tuple[int, int, str, int]]:
    """(newest of these records, id, uid, last record) of each session, newest first."""
    return reader.db.execute(
        f"""SELECT max(r.seq), s.id, s.uid, s.updated_seq FROM record r JOIN session s ON s.id = r.session
        WHERE r.seq IN ({marks(seqs)}) GROUP BY s.id ORDER BY 1 DESC""",
        seqs,
    ).fetchall()


def added(reader: Reader, words: Sequence[str], limit: int) -> list[tuple[str, bytes]]:
    """Dialect and bytes of what the newest ``limit`` records added that hold all ``words`` (letters and digits alone),
    and of those that are not indexed yet. In which order the words come is for the caller to see.
    """
    found = reader.db.execute(
        """SELECT rowid FROM words WHERE words MATCH ?
        UNION SELECT seq FROM request WHERE seq > (SELECT indexed FROM tally) ORDER BY 1 DESC LIMIT ?""",
        (" AND ".join(map(unspaced.sought, words)), limit),
    ).fetchall()
    said: list[tuple[str, bytes]] = []
    for (seq,) in found:
        (dialect,) = reader.db.execute("SELECT dialect FROM record WHERE seq = ?", (seq,)).fetchone()
        said += [(dialect, raw) for raw in content.raws(reader, new_ids(reader.db, seq))]
    return said


def _has_from(reader: Reader, query: Query, session: str, start: int) -> bool:
    """Whether a session has a match from ``start`` on."""
    only = Query(
        query.words, query.without, query.phrases, (*query.fields, Field("session", session)), query.since_ns,
        query.until_ns,
    )  # fmt: skip
    newest = next(iter(_windows(reader, only, _LAST, want=1)), None)
    return newest is not None and any(seq >= start for seq in newest.seqs)


def _windows(reader: Reader, query: Query, start: int, *, want: int) -> Iterator[_Window]:
    """What fits below ``start``, as far as a page may look. Phrases are left to the caller."""
    walk = _walk(query)
    checks, values = _checks(query, walk)
    low, high = _bounds(reader, query)
    size = want + 1 if not checks and not query.phrases else _WINDOW
    if query.without and not walk.by_words:
        size = min(size, _LOOKED_UP)
    top = start if high is None else min(start, high + 1)
    key = "rowid" if walk.by_words else "seq"
    for _ in range(_WINDOWS):
        rows = reader.db.execute(
            f"{walk.sql} AND {key} < ? AND {key} >= ? ORDER BY {key} DESC LIMIT ?", (*walk.values, top, low, size)
        ).fetchall()
        last = len(rows) < size
        if rows:
            top = rows[-1][0]
            yield _Window([seq for (seq,) in _checked(reader, rows, checks, values)], top, last)
        if last:
            return


def _checked(reader: Reader, rows: list[Any], checks: str, values: Sequence[object]) -> list[Any]:
    if not checks or not rows:
        return rows
    return reader.db.execute(
        f"SELECT r.seq FROM record r WHERE r.seq IN ({marks(rows)}) AND {checks} ORDER BY r.seq DESC",
        (*(seq for (seq,) in rows), *values),
    ).fetchall()


def _bounds(reader: Reader, query: Query) -> tuple[int, int | None]:
    """Seqs between which all that the query asks for lies."""
    low, high = rollups.bounds(reader.db, query.since_ns, query.until_ns)
    if session := query.one("session"):
        id, values = ("= (SELECT id FROM session WHERE uid = ?)", (session,)) if len(session) >= _WHOLE else (
            f"IN {_NAMED}", (session, f"{session}~"),
        )  # fmt: skip
        (first,) = reader.db.execute(f"SELECT min(seq) FROM record WHERE session {id}", values).fetchone()
        (last,) = reader.db.execute(f"SELECT max(seq) FROM record WHERE session {id}", values).fetchone()
        low, high = max(low, first or _LAST), min(_LAST if high is None else high, last or 0)
    return low, high


def _walk(query: Query) -> _Walk:
    if query.words:
        return _Walk("SELECT rowid FROM words WHERE words MATCH ?", (_match(query),), by_words=True)
    ranked = [(rank, field) for field in query.fields if (rank := _rank(field)) is not None]
    if not ranked:
        return _Walk("SELECT seq FROM record WHERE 1", ())
    _, field = min(ranked, key=lambda item: item[0])
    if field.name in _WALKS:
        return _Walk(_WALKS[field.name], (field.value,), field)
    if field.name == "has":
        return _Walk(_HAS_WALKS[field.value], (), field)
    return _Walk(_HAS_WALKS["error"], ())  # the check tells how they failed


def _rank(field: Field) -> int | None:
    """How much walking its index narrows a search, the most first; None where it has none."""
    if field.without or field in (Field("kind", "main"), Field("status", "ok")):
        return None
    if field.name == "session" and len(field.value) < _WHOLE:
        return None
    key = f"has:{field.value}" if field.name == "has" else field.name
    return _RANKS.index(key) if key in _RANKS else None


def _match(query: Query) -> str:
    """The words for FTS5."""
    wanted = [unspaced.sought(word) for word in dict.fromkeys(query.words)]
    left_out = "".join(f" NOT {unspaced.sought(word)}" for word in query.without)
    return f"({' AND '.join(wanted)}){left_out}"


def _checks(query: Query, walk: _Walk) -> tuple[str, list[object]]:
    """What is left of the query once its walk is known, as a condition on ``record r``."""
    parts: list[str] = []
    values: list[object] = []
    for field in query.fields:
        if field == walk.done:
            continue
        condition, value = _condition(field)
        parts.append(f"NOT ({condition})" if field.without else condition)
        values += value
    for name, bound in ((">=", query.since_ns), ("<=", query.until_ns)):
        if bound is not None:
            parts.append(f"r.started_ns {name} ?")
            values.append(bound)
    for word in query.without if not walk.by_words else ():
        parts.append("NOT EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND rowid = r.seq)")
        values.append(unspaced.sought(word))
    return " AND ".join(parts), values


def _condition(field: Field) -> tuple[str, list[object]]:
    if field.name == "has":
        return _HAS[field.value], []
    if field.name == "session":
        return _CHECKS["session"], [field.value, f"{field.value}~"]
    if field.name != "status":
        return _CHECKS[field.name], [field.value]
    if field.value == "failed":
        return _HAS["error"], []
    return ("r.status = ?", [int(field.value)]) if field.value.isdigit() else ('r."end" = ?', [field.value])
