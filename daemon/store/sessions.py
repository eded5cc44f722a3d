"""Sessions: the row that lists show, and the ids that point at it.

Counters change in the transaction that stores the record, so they never drift. `daemon.store.placing` decides which
record goes where.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from daemon.core.errors import NotFound
from daemon.core.ids import new_id
from daemon.core.records import End, StoredMessage
from daemon.core.rows import SessionRow
from daemon.store import messages as content
from daemon.store import pages, titles
from daemon.store.connection import Reader, marks
from daemon.store.names import Names
from daemon.store.placing import Incoming, Place
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


def count(db: sqlite3.Connection, new: Incoming, place: Place, at: tuple[int, int]) -> None:
    """Update the row of the session for a record; ``at`` is (session, seq)."""
    exchange, transcript = new.exchange, new.transcript
    session, seq = at
    answered = place.main_line and exchange.end is End.OK
    main = seq if place.main_line else None
    db.execute(
        """UPDATE session SET updated_ns = max(updated_ns, ?), updated_seq = ?, records = records + 1,
        turns = turns + ?, prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,
        main_seq = coalesce(?, main_seq), answer_seq = coalesce(?, answer_seq), tools = coalesce(?, tools),
        title = CASE WHEN title = '' THEN ? ELSE title END, agent = coalesce(agent, ?), cwd = coalesce(cwd, ?)
        WHERE id = ?""",
        (
            exchange.started_ns + max(0, exchange.duration_us) * 1000, seq, answered,
            transcript.usage.prompt, transcript.usage.completion,
            main, seq if answered else None, transcript.tools if place.main_line else None,
            _title(transcript.messages) if place.main_line else "", new.agent, exchange.cwd, session,
        ),
    )  # fmt: skip


#: Of ``record r`` with ``f``, what it repeats.
_MAIN: Final = "(r.kind = 'main' OR f.kind = 'main')"


def recount(db: sqlite3.Connection, reader: Reader, session: int) -> None:
    """Bring a session that lost records up to date from those that are left. ``reader`` decodes messages."""
    records = f"FROM record r LEFT JOIN record f ON f.seq = r.retry_of WHERE r.session = {session:d}"
    first = db.execute(f"SELECT r.seq {records} AND {_MAIN} ORDER BY r.seq LIMIT 1").fetchone()
    title = "" if first is None else _title(content.messages(reader, message_ids(db, first[0])))
    db.execute(
        f"""UPDATE session SET (records, turns, prompt_tokens, completion_tokens, updated_seq, updated_ns, main_seq,
        answer_seq) = (SELECT count(*), sum({_MAIN} AND r."end" = 'ok'), sum(r.prompt_tokens),
        sum(r.completion_tokens), max(r.seq), max(r.started_ns + r.duration_us * 1000),
        max(CASE WHEN {_MAIN} THEN r.seq END), max(CASE WHEN {_MAIN} AND r."end" = 'ok' THEN r.seq END) {records}),
        title = ? WHERE id = ?""",
        (title, session),
    )


def _title(messages: Sequence[StoredMessage]) -> str:
    """What the person asked last when the session began: some agents put examples or their surroundings before it."""
    for message in reversed(messages):
        if message.role == "user" and (line := titles.title(message.text)):
            return line
    return ""


# -- reading ----------------------------------------------------------------------------------------

_ROW = """SELECT s.updated_seq, s.uid, s.scenario, s.agent, s.title, s.created_ns, s.updated_ns, s.turns, s.records,
    s.prompt_tokens, s.completion_tokens, p.uid, s.cwd, s.score, s.reports, s.updated_seq
    FROM session s LEFT JOIN session p ON p.id = s.parent"""


def session(reader: Reader, uid: str) -> SessionRow:
    row = reader.db.execute(f"{_ROW} WHERE s.uid = ?", (uid,)).fetchone()
    if row is None:
        raise NotFound(f"no session {uid!r}", hint="reef traces list")
    return _row(reader, row)


def sessions(
    reader: Reader, scenario: str | None, limit: int, *, before: str | None, after: str | None = None
) -> tuple[list[SessionRow], str | None]:
    """Latest activity first; with ``after``, what moved later, oldest first. A cursor is a row's ``seq``."""
    wanted = {"s.scenario = (SELECT id FROM name WHERE text = ?)": scenario}
    rows, cursor = pages.rows(reader.db, _ROW, "s.updated_seq", wanted, limit=limit, before=before, after=after)
    return [_row(reader, row) for row in rows], cursor


def last_session(db: sqlite3.Connection, names: Names, scenario: str | None) -> int | None:
    """The session whose main line moved last: what "the last session" means for feedback."""
    condition = "main_seq IS NOT NULL" + ("" if scenario is None else " AND scenario = ?")
    values = () if scenario is None else (names.find(db, scenario),)
    row = db.execute(f"SELECT id FROM session WHERE {condition} ORDER BY main_seq DESC LIMIT 1", values).fetchone()
    return None if row is None else int(row[0])


def _row(reader: Reader, row: tuple[object, ...]) -> SessionRow:
    _, uid, scenario, agent, *rest = row
    names, db = reader.names, reader.db
    return SessionRow(uid, names.text(db, scenario), names.optional_text(db, agent), *rest)  # type: ignore[arg-type]
