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
from daemon.store import records, rollups, titles
from daemon.store.connection import Reader
from daemon.store.pages import cursor_value, page_size
from daemon.store.query import Field, Query
from daemon.store.requests import message_ids

#: Records looked at in one go, and in one page.
_WINDOW: Final = 900
_WINDOWS: Final = 3
#: Records whose text is read in a page that asks for a phrase.
_READ: Final = 60
_AROUND: Final = 60
_LAST: Final = 1 << 62

#: Where a field can be walked: one value of it, newest first.
_WALKS: Final = {
    "session": "SELECT seq FROM record WHERE session = (SELECT id FROM session WHERE uid = ?)",
    "kind": "SELECT seq FROM record WHERE kind <> 'main' AND kind = ?",
    "signal": "SELECT DISTINCT seq FROM signal WHERE name = ?",
    "model": "SELECT seq FROM record WHERE model_asked = (SELECT id FROM name WHERE text = ?)",
    "agent": "SELECT seq FROM record WHERE agent = (SELECT id FROM name WHERE text = ?)",
    "scenario": "SELECT seq FROM record WHERE scenario = (SELECT id FROM name WHERE text = ?)",
}
_HAS_WALKS: Final = {
    "feedback": "SELECT DISTINCT seq FROM reference WHERE 1",
    "error": """SELECT seq FROM record INDEXED BY record_failed WHERE "end" <> 'ok'""",
}
#: Which index is walked first.
_RANKS: Final = (
    "session", "has:feedback", "status", "has:error", "kind", "signal", "model", "agent", "scenario"
)  # fmt: skip
_CHECKS: Final = {
    "session": "r.session IN (SELECT id FROM session WHERE uid = ?)",
    "signal": "EXISTS (SELECT 1 FROM signal g WHERE g.name = ? AND g.seq = r.seq)",
    "model": "r.model_asked IN (SELECT id FROM name WHERE text = ?)",
    "agent": "coalesce(r.agent, 0) IN (SELECT id FROM name WHERE text = ?)",
    "scenario": "r.scenario IN (SELECT id FROM name WHERE text = ?)",
    "release": "r.release_id IN (SELECT id FROM name WHERE text = ?)",
    "kind": "r.kind = ?",
}
_HAS: Final = {
    "feedback": "EXISTS (SELECT 1 FROM reference f WHERE f.seq = r.seq)",
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


@dataclass(slots=True)
class _Looked:
    """How far a page has come; ``ended`` once there is nothing below."""

    at: int
    ended: bool = False


def search(reader: Reader, query: Query, limit: int, before: str | None) -> SearchPage:
    """A page of records, newest first, with the cursor of the next one (None: there is none)."""
    size = page_size(limit)
    looked = _Looked(_LAST if before is None else cursor_value(before))
    found: list[Hit] = []
    for seq, snippet in _matches(reader, query, looked, want=size):
        found.append(Hit(records.by_seq(reader, seq), snippet))
        if len(found) == size:
            looked.at = seq
            break
    mark, last = reader.db.execute("SELECT indexed, (SELECT max(seq) FROM record) FROM tally").fetchone()
    more = str(looked.at) if len(found) == size or not looked.ended else None
    return SearchPage(tuple(found), more, max(0, (last or 0) - mark) if query.words else 0)


def sessions_with(reader: Reader, query: Query, limit: int, before: str | None) -> tuple[list[str], str | None]:
    """The sessions that have such records, by their newest one; with the cursor of the next page."""
    size, start = page_size(limit), _LAST if before is None else cursor_value(before)
    looked = _Looked(start)
    found: dict[int, str] = {}
    seen: set[int] = set()
    for seq, _ in _matches(reader, query, looked, want=_WINDOW):
        id, uid, updated = reader.db.execute(
            "SELECT s.id, s.uid, s.updated_seq FROM record r JOIN session s ON s.id = r.session WHERE r.seq = ?", (seq,)
        ).fetchone()
        if id in seen:
            continue
        if len(found) == size:
            return list(found.values()), str(seq + 1)
        seen.add(id)
        # One that moved since may have been on the page before, by a newer record.
        if updated < start or not _has_from(reader, query, uid, start):
            found[id] = uid
    return list(found.values()), None if looked.ended else str(looked.at)


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


def _has_from(reader: Reader, query: Query, session: str, start: int) -> bool:
    """Whether a session has a match from ``start`` on."""
    only = Query(
        query.words, query.without, query.phrases, (*query.fields, Field("session", session)), query.since_ns,
        query.until_ns,
    )  # fmt: skip
    return any(seq >= start for seq, _ in _matches(reader, only, _Looked(_LAST), want=1))


def _matches(reader: Reader, query: Query, looked: _Looked, *, want: int) -> Iterator[tuple[int, str | None]]:
    """(seq, where the words stand) below ``looked``, newest first, as far as a page may look."""
    walk = _walk(query)
    checks, values = _checks(query, walk)
    low, high = _bounds(reader, query)
    window = want + 1 if not checks and not query.phrases else _WINDOW
    read = 0
    for _ in range(_WINDOWS):
        top = looked.at if high is None else min(looked.at, high + 1)
        key = "rowid" if walk.by_words else "seq"
        rows = reader.db.execute(
            f"{walk.sql} AND {key} < ? AND {key} >= ? ORDER BY {key} DESC LIMIT ?", (*walk.values, top, low, window)
        ).fetchall()
        for (seq,) in _checked(reader, rows, checks, values):
            snippet = _snippet(reader, seq, query) if query.words else None
            read += bool(query.phrases)
            if snippet is not None or not query.phrases:
                yield seq, snippet
            looked.at = seq
            if read == _READ:
                return
        if len(rows) < window:
            looked.ended = True
            return
        looked.at = rows[-1][0]


def _checked(reader: Reader, rows: list[Any], checks: str, values: Sequence[object]) -> list[Any]:
    if not checks or not rows:
        return rows
    marks = ",".join("?" * len(rows))
    return reader.db.execute(
        f"SELECT r.seq FROM record r WHERE r.seq IN ({marks}) AND {checks} ORDER BY r.seq DESC",
        (*(seq for (seq,) in rows), *values),
    ).fetchall()


def _bounds(reader: Reader, query: Query) -> tuple[int, int | None]:
    """Seqs between which all that the query asks for lies."""
    low, high = rollups.bounds(reader.db, query.since_ns, query.until_ns)
    if session := query.one("session"):
        id = "(SELECT id FROM session WHERE uid = ?)"
        (first,) = reader.db.execute(f"SELECT min(seq) FROM record WHERE session = {id}", (session,)).fetchone()
        (last,) = reader.db.execute(f"SELECT max(seq) FROM record WHERE session = {id}", (session,)).fetchone()
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
    if field.without or field == Field("kind", "main") or field == Field("status", "ok"):
        return None
    key = f"has:{field.value}" if field.name == "has" else field.name
    return _RANKS.index(key) if key in _RANKS else None


def _match(query: Query) -> str:
    """The words for FTS5, each quoted: it reads nothing in them as its own."""
    wanted = [f'"{word[:-1]}" *' if word.endswith("*") else f'"{word}"' for word in dict.fromkeys(query.words)]
    left_out = "".join(f' NOT "{word}"' for word in query.without)
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
        values.append(f'"{word}"')
    return " AND ".join(parts), values


def _condition(field: Field) -> tuple[str, list[object]]:
    if field.name == "has":
        return _HAS[field.value], []
    if field.name != "status":
        return _CHECKS[field.name], [field.value]
    if field.value == "failed":
        return _HAS["error"], []
    return ("r.status = ?", [int(field.value)]) if field.value.isdigit() else ('r."end" = ?', [field.value])


def _snippet(reader: Reader, seq: int, query: Query) -> str | None:
    """The line around what was asked for; None where a phrase does not stand in any one message."""
    seen, answer = reader.db.execute("SELECT seen, answer FROM request WHERE seq = ?", (seq,)).fetchone()
    ids = message_ids(reader.db, seq)[seen:] + ([answer] if answer is not None else [])
    texts = [one.text for one in content.messages(reader, ids) if one.role != "system"]
    folded = [" ".join(text.casefold().split()) for text in texts]
    phrases = [" ".join(phrase.casefold().split()) for phrase in query.phrases]
    if not all(any(phrase in text for text in folded) for phrase in phrases):
        return None
    sought = [*phrases, *(word.rstrip("*").casefold() for word in query.words)]
    for text, low in zip(texts, folded, strict=True):
        plain = " ".join(text.split())
        for word in sought:
            if (at := low.find(word)) >= 0:
                begin = max(0, at - _AROUND)
                line = titles.one_line(plain[begin : at + len(word) + _AROUND])
                return f"…{line}" if begin else line
    return ""
