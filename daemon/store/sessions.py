"""Sessions: the row that lists show, and the ids that point at it.

Counters change in the transaction that stores the record, so they never drift. `daemon.store.placing` decides which
record goes where.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from daemon.core.errors import NotFound, UsageError
from daemon.core.ids import new_id
from daemon.core.records import End, Kind
from daemon.core.rows import SessionRow
from daemon.store import kinds, titles
from daemon.store import messages as content
from daemon.store.connection import Reader, marks
from daemon.store.names import Names
from daemon.store.pages import LARGEST, cursor_value, page, page_size
from daemon.store.placing import Incoming, Place, last_main
from daemon.store.requests import message_ids


def enter(db: sqlite3.Connection, new: Incoming, place: Place, known: tuple[int, str] | None) -> tuple[int, str]:
    """Id and uid of the record's session, made when it is new, with the exchange's keys pointing at it. ``known`` is
    probably the one."""
    exchange, id = new.exchange, place.session
    if id is None:
        uid = new_id("ses")
        cursor = db.execute(
            """INSERT INTO session (uid, scenario, parent, agent, created_ns, updated_ns, updated_seq)
            VALUES (?,?,?,?,?,?,0)""",
            (uid, new.scenario, place.parent_session, new.agent, exchange.started_ns, exchange.started_ns),
        )
        id = cursor.lastrowid or 0
    elif known is not None and known[0] == id:
        uid = known[1]
    else:
        (uid,) = db.execute("SELECT uid FROM session WHERE id = ?", (id,)).fetchone()
    if new.keys:
        _claim(db, new, id)
    return id, uid


def _claim(db: sqlite3.Connection, new: Incoming, session: int) -> None:
    """Point the exchange's keys at its session. The session's own key is the strongest one ever seen with it."""
    strongest, *weaker = new.keys
    db.execute(
        f"UPDATE session SET key = ? WHERE id = ? AND (key IS NULL OR key IN ({marks(weaker)}))",
        (strongest, session, *weaker),
    )
    db.executemany(
        "INSERT INTO session_key VALUES (?,?,?) ON CONFLICT DO UPDATE SET session = excluded.session "
        "WHERE session != excluded.session",
        [(new.scenario, key, session) for key in new.keys],
    )


def count(db: sqlite3.Connection, new: Incoming, place: Place, at: tuple[int, int], *, titled: bool) -> bool:
    """Update the row of the session for a record; ``at`` is (session, seq). Whether it is known to have a title, as
    ``titled`` says that it did before."""
    exchange, transcript = new.exchange, new.transcript
    session, seq = at
    title, said = "", transcript.messages
    if not titled:
        title = titles.of(said) if place.main_line else titles.title(kinds.titled(said))
    answered = place.main_line and exchange.end is End.OK
    main = seq if place.main_line else None
    db.execute(
        """UPDATE session SET updated_ns = max(updated_ns, ?), updated_seq = ?, records = records + 1,
        turns = turns + ?, prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,
        main_seq = coalesce(?, main_seq), answer_seq = coalesce(?, answer_seq), tools = coalesce(?, tools),
        title = CASE WHEN title = '' THEN ? ELSE title END, agent = coalesce(agent, ?), cwd = coalesce(cwd, ?),
        cost_usd = coalesce(cost_usd + ?, cost_usd, ?), duration_us = duration_us + ?,
        subagents = subagents + ?, side = side + ?, retries = retries + ? WHERE id = ?""",
        (
            exchange.started_ns + max(0, exchange.duration_us) * 1000, seq, answered,
            transcript.usage.prompt, transcript.usage.completion,
            main, seq if answered else None, transcript.tools if place.main_line else None,
            title, new.agent, exchange.cwd, transcript.usage.cost, transcript.usage.cost, max(0, exchange.duration_us),
            place.kind is Kind.SUBAGENT, place.kind is Kind.SIDE, place.kind is Kind.RETRY, session,
        ),
    )  # fmt: skip
    return titled or title != ""


#: Of ``record r`` with ``f``, what it repeats, which may be gone.
_MAIN: Final = "(r.kind = 'main' OR coalesce(f.kind, '') = 'main')"


def recount(db: sqlite3.Connection, reader: Reader, session: int) -> None:
    """Bring a session that lost records up to date from those that are left. ``reader`` decodes messages."""
    records = f"FROM record r LEFT JOIN record f ON f.seq = r.retry_of WHERE r.session = {session:d}"
    first = db.execute(f"SELECT r.seq {records} AND {_MAIN} ORDER BY r.seq LIMIT 1").fetchone()
    title = "" if first is None else titles.of(content.messages(reader, message_ids(db, first[0])))
    db.execute(
        f"""UPDATE session SET (records, turns, prompt_tokens, completion_tokens, updated_seq, updated_ns, main_seq,
        answer_seq, cost_usd, duration_us, subagents, side, retries) = (SELECT count(*),
        sum({_MAIN} AND r."end" = 'ok'), sum(r.prompt_tokens), sum(r.completion_tokens), max(r.seq),
        max(r.started_ns + r.duration_us * 1000), max(CASE WHEN {_MAIN} THEN r.seq END),
        max(CASE WHEN {_MAIN} AND r."end" = 'ok' THEN r.seq END), sum(r.cost_usd), sum(r.duration_us),
        sum(r.kind = 'subagent'), sum(r.kind = 'side'), sum(r.kind = 'retry') {records}),
        title = ? WHERE id = ?""",
        (title, session),
    )


# -- reading ----------------------------------------------------------------------------------------

_ROW = """SELECT s.updated_seq, s.uid, s.scenario, s.agent, m.release_id, m.end, s.pinned_ns, s.title, s.created_ns,
    s.updated_ns, s.turns, s.records, s.prompt_tokens, s.completion_tokens, p.uid, s.cwd, s.score, s.reports,
    s.updated_seq, s.cost_usd, s.duration_us, s.subagents, s.side, s.retries
    FROM session s LEFT JOIN session p ON p.id = s.parent LEFT JOIN record m ON m.seq = s.main_seq"""
#: The scenarios that have sessions, each found behind the one before in their index.
_SCOPES: Final = """WITH RECURSIVE scope (id) AS (SELECT min(scenario) FROM session UNION ALL
    SELECT (SELECT min(scenario) FROM session WHERE scenario > scope.id) FROM scope WHERE id IS NOT NULL)"""


def session(reader: Reader, uid: str) -> SessionRow:
    row = reader.db.execute(f"{_ROW} WHERE s.uid = ?", (uid,)).fetchone()
    if row is None:
        raise NotFound(f"no session {uid!r}", hint="reef traces list")
    return _row(reader, row)


def named(reader: Reader, uids: Sequence[str]) -> list[SessionRow]:
    """Those that are there, latest activity first."""
    rows = reader.db.execute(f"{_ROW} WHERE s.uid IN ({marks(uids)}) ORDER BY s.updated_seq DESC", uids).fetchall()
    return [_row(reader, row) for row in rows]


def placed(reader: Reader, id: int, seq: int) -> SessionRow:
    """A session that is there, at its place in some list."""
    return replace(_row(reader, reader.db.execute(f"{_ROW} WHERE s.id = ?", (id,)).fetchone()), seq=seq)


def sessions(
    reader: Reader, scenario: str | None = None, limit: int = 50, *, before: str | None = None, after: str | None = None
) -> tuple[list[SessionRow], str | None]:
    """Latest activity first; with ``after``, what moved later, oldest first. A cursor is a row's ``seq``."""
    if before is not None and after is not None:
        raise UsageError("before and after exclude each other")
    bound, order, place = ("<", "DESC", before) if after is None else (">", "ASC", after)
    rows = reader.db.execute(
        f"""{_SCOPES} {_ROW} WHERE s.id IN (SELECT one.id FROM scope CROSS JOIN session one ON one.id IN (
            SELECT id FROM session WHERE scenario = scope.id AND updated_seq {bound} :place
            ORDER BY updated_seq {order} LIMIT :size)
            WHERE :scenario IS NULL OR scope.id = (SELECT id FROM name WHERE text = :scenario)
            ORDER BY one.updated_seq {order} LIMIT :size)
        ORDER BY s.updated_seq {order}""",
        {
            "scenario": scenario,
            "place": LARGEST if place is None else cursor_value(place),
            "size": page_size(limit) + 1,
        },
    ).fetchall()
    rows, cursor = page(rows, limit)
    return [_row(reader, row) for row in rows], cursor


def last_session(db: sqlite3.Connection, names: Names, scenario: str | None) -> int | None:
    """The session whose main line moved last: what "the last session" means for feedback."""
    return max((last_main(db, id) for id in scopes(db, names, scenario)), default=(0, None))[1]


def scopes(db: sqlite3.Connection, names: Names, scenario: str | None) -> list[int]:
    """A scenario's id; without one, those of all that have sessions."""
    if scenario is not None:
        return [names.find(db, scenario) or 0]
    return [id for (id,) in db.execute(f"{_SCOPES} SELECT id FROM scope WHERE id IS NOT NULL")]


def _row(reader: Reader, row: tuple[object, ...]) -> SessionRow:
    _, uid, scenario, agent, release, end, pinned, *rest = row
    names, db = reader.names, reader.db
    return SessionRow(
        uid, names.text(db, scenario), names.optional_text(db, agent), *rest,  # type: ignore[arg-type, misc]
        status=None if end is None else End(end), release_id=names.optional_text(db, release),  # type: ignore[arg-type]
        pinned=pinned is not None,
    )  # fmt: skip
