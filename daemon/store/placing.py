"""Which session a record belongs to, what it is to it, and what it goes on from. Reads only.

Ids decide first (headers before bodies), the prefix tree after them. A record that goes on from the middle of a session
is a fork: an edge inside the session where an id says that it is the same one, else a session of its own with its
parent named.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from daemon.core.records import End, Exchange, Kind, Transcript
from daemon.store import inband, kinds, summaries, titles, tree


class Edge(StrEnum):
    """How a record hangs on its parent."""

    START = "start"  # nothing before it
    NEXT = "next"  # goes on where the parent ended
    FORK = "fork"  # goes on where something else already did
    REWRITE = "rewrite"  # same session, other history: an edited past, a new beginning
    COMPACTION = "compaction"  # same session, a shorter history in its place
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
    tools: int


#: A title is asked for while the conversation begins; it is looked for among so many sessions.
_MEANWHILE_NS = 60 * 10**9
_AMONG = 32
_OPEN = "SELECT id, key, title, agent, main_seq, tools FROM session"
_LATEST = "SELECT id, main_seq, updated_seq FROM session WHERE scenario = ? ORDER BY updated_seq DESC LIMIT ?"
#: Sessions looked at, where they have nothing but chores.
LATELY = 1000


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record about to be placed: its chain (one entry more than messages) and the hash of its request."""

    exchange: Exchange
    transcript: Transcript
    scenario: int
    agent: int | None
    chain: Sequence[bytes]
    hash: bytes
    #: The key of each message.
    said: Sequence[bytes] = ()
    #: See `daemon.store.kinds.is_chore`.
    chore: bool = False
    #: Ids of its conversation, strongest first: the headers' before the body's.
    keys: tuple[str, ...] = ()


def place(db: sqlite3.Connection, new: Incoming) -> Place:
    """Decide session, kind and parent. Reads only."""
    keyed = _by_key(db, new)
    session = None if keyed is None else keyed.id
    end = tree.at_end(db, new.chain, session)
    if keyed is not None or not new.keys:
        failed = tree.same_request(db, end, new.hash, inside=session is not None, subagent=new.exchange.subagent)
        if failed is not None and failed.end is not End.OK:
            return _retry(db, failed)
    found = tree.find(db, new.chain, end, session=session, subagent=new.exchange.subagent) or _previous(
        db, new, session
    )
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
    kept = _by_tail(db, new, session)
    parent, seen = (keyed.main_seq, 0) if kept is None else (kept.seq, kept.covered)
    return _placed(Place(session, kind, _rewritten(db, new, parent), parent, seen))


def _rewritten(db: sqlite3.Connection, new: Incoming, before: int) -> Edge:
    """What became of a history that is not gone on from: summed up, or only another one."""
    (messages,) = db.execute("SELECT messages FROM record WHERE seq = ?", (before,)).fetchone()
    return Edge.COMPACTION if 0 < len(new.transcript.messages) < messages else Edge.REWRITE


def _previous(db: sqlite3.Connection, new: Incoming, session: int | None) -> tree.Found | None:
    """The record whose answer the request names as the one it goes on from; what that one had is not sent again."""
    if new.transcript.previous is None:
        return None
    row = db.execute(
        "SELECT seq FROM answer_id WHERE scenario = ? AND id = ?", (new.scenario, new.transcript.previous)
    ).fetchone()
    found = None if row is None else tree.at(db, row[0])
    return found if found is not None and session in (None, found.session) else None


def _placed(place: Place) -> Place:
    return replace(place, main_line=place.kind is Kind.MAIN)


def _by_tree(db: sqlite3.Connection, new: Incoming, found: tree.Found | None) -> Place:
    if found is None:
        owner = _owner_of_side(db, new)
        if owner is not None:
            return Place(owner.id, Kind.SIDE, Edge.START)
        found = _by_tail(db, new)
        going_on = Edge.NEXT if found is None else _rewritten(db, new, found.seq)
    else:
        going_on = Edge.NEXT
    if found is None:
        return _begun(db, new)
    owner = _load(db, found.session)
    kind = _kind(new, owner, found)
    stranger = bool(new.keys) and owner.key is not None
    if found.leaf and not stranger:
        return _placed(Place(owner.id, kind, going_on, found.seq, found.covered))
    if not stranger and tree.resumed(db, found, owner.main_seq):
        return _placed(Place(owner.id, kind, Edge.REWRITE, owner.main_seq))
    return _placed(Place(None, kind, Edge.FORK, found.seq, found.covered, owner.id))


def _begun(db: sqlite3.Connection, new: Incoming) -> Place:
    """A new session, or the one that waits since its title was asked for, or that was summed up."""
    kind = _kind(new, None, None)
    if kind is Kind.MAIN and not new.keys:
        summed = summaries.summed_up(db, new.exchange, new.transcript.messages)
        if summed is not None:
            return _placed(Place(summed, kind, Edge.COMPACTION, _load(db, summed).main_seq))
    waits = _named(db, new, titles.of(new.transcript.messages), begun=False) if kind is Kind.MAIN else None
    return _placed(Place(None if waits is None else waits.id, kind, Edge.START))


def _named(db: sqlite3.Connection, new: Incoming, title: str, *, begun: bool) -> _Open | None:
    """The same agent's latest session of that title, begun about when this was asked; ``begun``: it has a turn."""
    row = db.execute(
        f"""{_OPEN} WHERE id IN (SELECT id FROM session WHERE scenario = ? ORDER BY updated_seq DESC LIMIT {_AMONG})
        AND agent IS ? AND title = ? AND (main_seq IS NOT NULL) = ? AND abs(created_ns - ?) < {_MEANWHILE_NS}
        ORDER BY updated_seq DESC LIMIT 1""",
        (new.scenario, new.agent, title, begun, new.exchange.started_ns),
    ).fetchone()
    return _Open(*row) if row is not None and title else None


def _by_tail(db: sqlite3.Connection, new: Incoming, session: int | None = None) -> tree.Found | None:
    """The record whose answer is the last one that was sent along, with what led to it: resumed under a new beginning,
    as Qwen Code does, or after a compaction that kept the end."""
    said = new.transcript.messages
    answers = (n for n in range(len(said) - 1, 0, -1) if said[n].role == "assistant" and not inband.is_answer(said, n))
    last = next(answers, 0)
    if new.exchange.subagent is not None or new.chore:
        return None
    point = tree.tail(new.exchange.scenario, new.exchange.dialect, new.said, last)
    return None if point is None else tree.find_tail(db, point, last + 1, session)


def _by_key(db: sqlite3.Connection, new: Incoming) -> _Open | None:
    """The session of the strongest key that is known. A weaker key counts only where the strongest one of that session
    came along too: else it is an id that several conversations share."""
    keys = new.keys
    for key in keys:
        row = db.execute(
            f"{_OPEN} WHERE id = (SELECT session FROM session_key WHERE scenario = ? AND key = ?)", (new.scenario, key)
        ).fetchone()
        if row is not None:
            found = _Open(*row)
            if key == keys[0] or found.key in keys:
                return found
    return None


def last_main(db: sqlite3.Connection, scenario: int) -> tuple[int, int | None]:
    """The session whose main line moved last, of those that moved lately: (that record, the session); (0, None) where
    there is none."""
    best: tuple[int, int | None] = (0, None)
    for id, main, updated in db.execute(_LATEST, (scenario, LATELY)):
        if updated < best[0]:  # as are all that come
            break
        best = max(best, (main, id)) if main is not None else best
    return best


def _owner_of_side(db: sqlite3.Connection, new: Incoming) -> _Open | None:
    """The last conversation, when this unclaimed request is visibly a chore about it; by a title, the one it names."""
    if typed := titles.title(kinds.titled(new.transcript.messages)):
        return _named(db, new, typed, begun=True)
    if new.keys or new.exchange.subagent:
        return None
    _, last = last_main(db, new.scenario)
    owner = None if last is None else _load(db, last)
    if owner is None or owner.agent != new.agent:
        return None
    messages = new.transcript.messages
    if new.chore or (owner.tools and not new.transcript.tools and kinds.quotes(messages, owner.title)):
        return owner
    return None


def _kind(new: Incoming, session: _Open | None, found: tree.Found | None) -> Kind:
    main_tools = session.tools if session is not None and session.main_seq is not None else None
    said = new.transcript.messages
    return kinds.classify(
        kinds.Facts(
            subagent=new.exchange.subagent is not None,
            extends=None if found is None else found.kind,
            tools=new.transcript.tools,
            main_tools=main_tools,
            chore=new.chore,
            aside=new.exchange.side or kinds.is_compaction(said) or kinds.is_guess(said),
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
