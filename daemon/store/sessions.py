"""Sessions: which one a record belongs to, and the row that lists show.

Header keys decide first, the prefix tree after them. A record that goes on from the middle of a session is a fork: an
edge inside the session where a key says that it is the same one, else a session of its own with its parent named.
Counters change in the transaction that stores the record, so they never drift.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from daemon.core.errors import NotFound, UsageError
from daemon.core.ids import new_id
from daemon.core.records import End, Exchange, Kind, Transcript
from daemon.core.rows import SessionRow
from daemon.store import kinds, titles, tree
from daemon.store.connection import Reader
from daemon.store.names import Names
from daemon.store.pages import cursor_value, page, page_size


class Edge(StrEnum):
    """How a record hangs on its parent."""

    START = "start"  # nothing before it
    NEXT = "next"  # goes on where the parent ended
    FORK = "fork"  # goes on where something else already did
    REWRITE = "rewrite"  # same session, other history: compaction, an edited past
    SPAWN = "spawn"  # a sub-agent's first


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record goes. ``session`` None: a new one, under ``parent_session``. ``seen``: see the schema's request
    table."""

    session: int | None
    kind: Kind
    edge: Edge
    parent: int | None = None
    seen: int = 0
    parent_session: int | None = None
    retry_of: int | None = None
    #: A retry is a turn of the main line when what it repeats was.
    main_line: bool = False


@dataclass(frozen=True, slots=True)
class _Open:
    """What placing needs to know of a session."""

    id: int
    key: str | None
    title: str
    agent: int | None
    main_seq: int | None
    answer_seq: int | None
    tools: int


_OPEN = "SELECT id, key, title, agent, main_seq, answer_seq, tools FROM session"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record about to be placed: its chain (one entry more than messages) and the hash of its request."""

    exchange: Exchange
    transcript: Transcript
    scenario: int
    agent: int | None
    chain: Sequence[bytes]
    hash: bytes


def place(db: sqlite3.Connection, new: Incoming) -> Place:
    """Decide session, kind and parent. Reads only."""
    keyed = _by_key(db, new)
    session = None if keyed is None else keyed.id
    if keyed is not None or not new.exchange.session_keys:
        failed = tree.same_request(db, new.chain[-1], new.hash, session=session, subagent=new.exchange.subagent)
        if failed is not None and failed.end is not End.OK:
            return _retry(db, failed)
    found = tree.find(db, new.chain, session, new.exchange.subagent)
    if keyed is None:
        return _by_tree(db, new, found)
    kind = _kind(new, keyed, found)
    if found is not None:
        edge = Edge.NEXT if found.leaf else Edge.FORK
        return _placed(Place(session, kind, edge, found.seq, found.covered))
    if keyed.main_seq is None or kind is Kind.SIDE:
        return _placed(Place(session, kind, Edge.START))
    if kind is Kind.SUBAGENT:
        return Place(session, kind, Edge.SPAWN, tree.last_of(db, keyed.id, new.exchange.spawner) or keyed.main_seq)
    return _placed(Place(session, kind, Edge.REWRITE, keyed.main_seq))


def _placed(place: Place) -> Place:
    if place.kind is not Kind.MAIN:
        return place
    return Place(place.session, place.kind, place.edge, place.parent, place.seen, place.parent_session, None, True)


def _by_tree(db: sqlite3.Connection, new: Incoming, found: tree.Found | None) -> Place:
    if found is None:
        owner = _owner_of_side(db, new)
        if owner is not None:
            return Place(owner.id, Kind.SIDE, Edge.START)
        return _placed(Place(None, _kind(new, None, None), Edge.START))
    owner = _load(db, found.session)
    kind = _kind(new, owner, found)
    stranger = bool(new.exchange.session_keys) and owner.key is not None
    if found.leaf and not stranger:
        return _placed(Place(owner.id, kind, Edge.NEXT, found.seq, found.covered))
    if not stranger and tree.resumed(db, found, owner.main_seq):
        return _placed(Place(owner.id, kind, Edge.REWRITE, owner.main_seq))
    return _placed(Place(None, kind, Edge.FORK, found.seq, found.covered, owner.id))


def _by_key(db: sqlite3.Connection, new: Incoming) -> _Open | None:
    """The session of the strongest key that is known. A weaker key counts only where the strongest one of that session
    came along too: else it is an id that several conversations share."""
    keys = new.exchange.session_keys
    for key in keys:
        row = db.execute(
            f"{_OPEN} WHERE id = (SELECT session FROM session_key WHERE scenario = ? AND key = ?)", (new.scenario, key)
        ).fetchone()
        if row is not None:
            found = _Open(*row)
            if key == keys[0] or found.key in keys:
                return found
    return None


def _owner_of_side(db: sqlite3.Connection, new: Incoming) -> _Open | None:
    """The last conversation, when this unclaimed request is visibly a chore about it."""
    if new.exchange.session_keys or new.exchange.subagent:
        return None
    row = db.execute(
        f"{_OPEN} WHERE scenario = ? AND main_seq IS NOT NULL ORDER BY main_seq DESC LIMIT 1", (new.scenario,)
    ).fetchone()
    owner = None if row is None else _Open(*row)
    if owner is None or owner.agent != new.agent:
        return None
    messages = new.transcript.messages
    if kinds.is_chore(messages) or (owner.tools and not new.transcript.tools and kinds.quotes(messages, owner.title)):
        return owner
    return None


def _kind(new: Incoming, session: _Open | None, found: tree.Found | None) -> Kind:
    main_tools = session.tools if session is not None and session.main_seq is not None else None
    return kinds.classify(
        kinds.Facts(
            subagent=new.exchange.subagent is not None,
            retry=False,
            extends=None if found is None else found.kind,
            tools=new.transcript.tools,
            main_tools=main_tools,
            chore=kinds.is_chore(new.transcript.messages),
        )
    )


def _retry(db: sqlite3.Connection, failed: tree.Found) -> Place:
    """Beside the failed attempt, with its parent: one logical call."""
    edge, parent, seen, first, kind, first_kind = db.execute(
        """SELECT r.edge, r.parent, q.seen, r.retry_of, r.kind, f.kind FROM record r JOIN request q ON q.seq = r.seq
        LEFT JOIN record f ON f.seq = r.retry_of WHERE r.seq = ?""",
        (failed.seq,),
    ).fetchone()
    return Place(
        failed.session, Kind.RETRY, Edge(edge), parent, seen,
        retry_of=first or failed.seq, main_line=(first_kind or kind) == Kind.MAIN,
    )  # fmt: skip


def _load(db: sqlite3.Connection, id: int) -> _Open:
    return _Open(*db.execute(f"{_OPEN} WHERE id = ?", (id,)).fetchone())


# -- writing ----------------------------------------------------------------------------------------


def enter(db: sqlite3.Connection, new: Incoming, place: Place) -> int:
    """The id of the record's session, made when it is new, with the exchange's keys pointing at it."""
    exchange, id = new.exchange, place.session
    if id is None:
        cursor = db.execute(
            """INSERT INTO session (uid, scenario, parent, agent, created_ns, updated_ns, updated_seq)
            VALUES (?,?,?,?,?,?,0)""",
            (new_id("ses"), new.scenario, place.parent_session, new.agent, exchange.started_ns, exchange.started_ns),
        )
        db.execute("UPDATE tally SET sessions = sessions + 1")
        id = cursor.lastrowid or 0
    if exchange.session_keys:
        _claim(db, new, id)
    return id


def _claim(db: sqlite3.Connection, new: Incoming, session: int) -> None:
    """Point the exchange's keys at its session. The session's own key is the strongest one ever seen with it."""
    strongest, *weaker = new.exchange.session_keys
    db.execute(
        f"UPDATE session SET key = ? WHERE id = ? AND (key IS NULL OR key IN ({','.join('?' * len(weaker))}))",
        (strongest, session, *weaker),
    )
    db.executemany(
        "INSERT INTO session_key VALUES (?,?,?) ON CONFLICT DO UPDATE SET session = excluded.session "
        "WHERE session != excluded.session",
        [(new.scenario, key, session) for key in new.exchange.session_keys],
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
            _title(transcript) if place.main_line else "", new.agent, exchange.cwd, session,
        ),
    )  # fmt: skip


def _title(transcript: Transcript) -> str:
    """What the person asked last when the session began: some agents put examples or their surroundings before it."""
    for message in reversed(transcript.messages):
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
    if before is not None and after is not None:
        raise UsageError("before and after exclude each other")
    where: list[str] = ["1"]
    values: list[object] = []
    if scenario is not None:
        where.append("s.scenario = (SELECT id FROM name WHERE text = ?)")
        values.append(scenario)
    if before is not None:
        where.append("s.updated_seq < ?")
        values.append(cursor_value(before))
    if after is not None:
        where.append("s.updated_seq > ?")
        values.append(cursor_value(after))
    order = "ASC" if after is not None else "DESC"
    rows = reader.db.execute(
        f"{_ROW} WHERE {' AND '.join(where)} ORDER BY s.updated_seq {order} LIMIT ?", (*values, page_size(limit) + 1)
    ).fetchall()
    rows, cursor = page(rows, limit)
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
