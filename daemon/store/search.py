"""Finding records, newest first, in pages that cost the same wherever they lie.

One index is walked, the one that a query narrows down most; whatever else it asks is checked on the records there, a
bounded number of them a page. So a page may be short, or empty, and still have a next one: never slow. The full-text
index has one document a record: what that record added to its conversation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from daemon.core.errors import UsageError
from daemon.core.rows import Hit, SearchPage
from daemon.store import conditions, feedback, records, rollups, unspaced
from daemon.store import messages as content
from daemon.store.conditions import NAMED, WHOLE
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


@dataclass(frozen=True, slots=True)
class _Window:
    """What fits among the records looked at in one go, up to the one at ``edge``; ``last``: none lie behind it."""

    seqs: list[int]
    edge: int
    last: bool


def search(reader: Reader, query: Query, limit: int = 50, before: str | None = None) -> SearchPage:
    """A page of records, newest first, with the cursor of the next one (None: there is none)."""
    size, cursor, found = page_size(limit), None, list[Hit]()
    for window in _windows(reader, query, _start(before), want=size):
        room = size - len(found)
        part = window.seqs[: _READ if query.phrases else room]
        lines = snippets(reader, part, query) if query.words else dict.fromkeys(part)
        fit = [seq for seq in part if not query.phrases or lines[seq] is not None][:room]
        scores = feedback.scores(reader, fit)
        found += [Hit(records.by_seq(reader, seq), lines[seq], scores.get(seq)) for seq in fit]
        if len(fit) == room or len(part) < len(window.seqs):
            floor = fit[-1] if len(fit) == room else part[-1]
            cursor = None if window.last and floor == window.seqs[-1] else floor
            break
        cursor = None if window.last else window.edge
    mark, last = reader.db.execute("SELECT indexed, (SELECT max(seq) FROM record) FROM tally").fetchone()
    unindexed = max(0, (last or 0) - mark) if query.words else 0
    return SearchPage(tuple(found), None if cursor is None else str(cursor), unindexed)


def sessions_with(
    reader: Reader, query: Query, limit: int, *, before: str | None, after: str | None = None
) -> tuple[list[tuple[int, int]], str | None]:
    """The sessions (their rows' ids) that have such records, with the place of their newest one: latest first, or, with
    ``after``, oldest first; and the cursor of the next page."""
    if before is not None and after is not None:
        raise UsageError("before and after exclude each other")
    size, up, cursor = page_size(limit), after is not None, None
    start = _start(before) if after is None else cursor_value(after)
    found: list[tuple[int, int]] = []
    newest: dict[int, int | None] = {}  # of sessions that were looked at
    for window in _windows(reader, query, start, want=_WINDOW, up=up):
        seqs = _with_phrases(reader, query, window.seqs[: _READ if query.phrases else None])
        for seq, id, uid, updated in _sessions_of(reader, seqs, up=up):
            if id not in newest:  # it stands at its newest match alone, however many it has
                sure = seq == updated or (updated < start and not up)
                newest[id] = seq if sure else _newest(reader, query, uid)
            if seq != newest[id]:
                continue
            if len(found) == size:
                return found, str(found[-1][1])
            found.append((id, seq))
        if query.phrases and len(window.seqs) > _READ:
            return found, str(window.seqs[_READ - 1])
        cursor = None if window.last else str(window.edge)
    return found, cursor


def _with_phrases(reader: Reader, query: Query, seqs: list[int]) -> list[int]:
    if not query.phrases:
        return seqs
    return [seq for seq, line in snippets(reader, seqs, query).items() if line is not None]


def _start(before: str | None) -> int:
    return _LAST if before is None else cursor_value(before)


def _sessions_of(reader: Reader, seqs: list[int], *, up: bool) -> list[tuple[int, int, str, int]]:
    """(newest of these records, id, uid, last record) of each session, in order."""
    return reader.db.execute(
        f"""SELECT max(r.seq), s.id, s.uid, s.updated_seq FROM record r JOIN session s ON s.id = r.session
        WHERE r.seq IN ({marks(seqs)}) GROUP BY s.id ORDER BY 1 {"ASC" if up else "DESC"}""",
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


def _newest(reader: Reader, query: Query, session: str) -> int | None:
    """A session's newest match, as far as a page may look."""
    only = replace(query, fields=(*query.fields, Field("session", session)))
    for window in _windows(reader, only, _LAST, want=1):
        if found := _with_phrases(reader, query, window.seqs[: _READ if query.phrases else 1]):
            return found[0]
    return None


def _windows(reader: Reader, query: Query, start: int, *, want: int, up: bool = False) -> Iterator[_Window]:
    """What fits below ``start`` (above it, with ``up``), as far as a page may look. Phrases are left to the caller."""
    walk = conditions.walk(query)
    checks, values = conditions.checks(query, walk)
    low, high = _bounds(reader, query)
    size = want + 1 if not checks and not query.phrases else _WINDOW
    if query.without and not walk.by_words:
        size = min(size, _LOOKED_UP)
    # Whole numbers: between two that are not part of it.
    low, high = low - 1, _LAST if high is None else high + 1
    key, order = "rowid" if walk.by_words else "seq", "ASC" if up else "DESC"
    for _ in range(_WINDOWS):
        low, high = (max(low, start), high) if up else (low, min(high, start))
        rows = reader.db.execute(
            f"{walk.sql} AND {key} > ? AND {key} < ? ORDER BY {key} {order} LIMIT ?", (*walk.values, low, high, size)
        ).fetchall()
        last = len(rows) < size
        if rows:
            start = rows[-1][0]
            yield _Window([seq for (seq,) in _checked(reader, rows, checks, values, order=order)], start, last)
        if last:
            return


def _checked(reader: Reader, rows: list[Any], checks: str, values: Sequence[object], *, order: str) -> list[Any]:
    if not checks or not rows:
        return rows
    return reader.db.execute(
        f"SELECT r.seq FROM record r WHERE r.seq IN ({marks(rows)}) AND {checks} ORDER BY r.seq {order}",
        (*(seq for (seq,) in rows), *values),
    ).fetchall()


def _bounds(reader: Reader, query: Query) -> tuple[int, int | None]:
    """Seqs between which all that the query asks for lies."""
    low, high = rollups.bounds(reader.db, query.since_ns, query.until_ns)
    if session := query.one("session"):
        id, values = ("= (SELECT id FROM session WHERE uid = ?)", (session,)) if len(session) >= WHOLE else (
            f"IN {NAMED}", (session, f"{session}~"),
        )  # fmt: skip
        (first,) = reader.db.execute(f"SELECT min(seq) FROM record WHERE session {id}", values).fetchone()
        (last,) = reader.db.execute(f"SELECT max(seq) FROM record WHERE session {id}", values).fetchone()
        low, high = max(low, first or _LAST), min(_LAST if high is None else high, last or 0)
    return low, high
