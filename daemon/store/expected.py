"""Where a call would be recorded that has no record yet. Reads only, and as little as placing does."""

from typing import Final, NamedTuple

from daemon.core.records import End, Kind
from daemon.core.rows import RecordRow
from daemon.store import kinds, person, records, tree
from daemon.store.connection import Reader
from daemon.store.placing import Edge, Incoming, Place, place
from daemon.store.preparing import Prepared

_TURNS: Final = (Kind.MAIN, Kind.RETRY)


class Above(NamedTuple):
    """What stands above a call: ``answer`` is the conversation's last one, None where it has none. ``turn``: the call
    is one of the main line."""

    turn: bool
    answer: RecordRow | None


def session(reader: Reader, new: Prepared) -> str | None:
    """Its id; None where it will be a new one."""
    found = _place(reader, new)
    if found is None or found.session is None:
        return None
    (uid,) = reader.db.execute("SELECT uid FROM session WHERE id = ?", (found.session,)).fetchone()
    return str(uid)


def above(reader: Reader, new: Prepared) -> Above:
    """The answer that a person sees above their words, else the session's last one of its main line."""
    found = _place(reader, new)
    if found is None:
        return Above(turn=not kinds.is_chore(new.transcript.messages), answer=None)
    turn = found.kind in _TURNS
    return Above(turn, _answer(reader, found) if turn and _goes_on(new) else None)


def _goes_on(new: Prepared) -> bool:
    """Whether an answer came along, in words or by name or summed up: what only begins under a session's id may be a
    sub-agent's errand."""
    said = new.transcript.messages
    return new.transcript.previous is not None or any(
        message.role == "assistant" or person.is_summary(message.text) for message in said
    )


def _answer(reader: Reader, found: Place) -> RecordRow | None:
    parent = None if found.parent is None else records.by_seq(reader, found.parent)
    if parent is not None and found.edge in (Edge.NEXT, Edge.FORK) and parent.kind in _TURNS and parent.end is End.OK:
        return parent
    row = reader.db.execute(
        """SELECT answer_seq FROM session
        WHERE id = coalesce(?, (SELECT session FROM record WHERE seq = ?)) AND answer_seq IS NOT NULL""",
        (found.session, found.parent),
    ).fetchone()
    return None if row is None else records.by_seq(reader, row[0])


def _place(reader: Reader, new: Prepared) -> Place | None:
    """None where nothing of the scenario is known."""
    exchange, transcript, names = new.exchange, new.transcript, reader.names
    scenario = names.find(reader.db, exchange.scenario)
    if scenario is None:
        return None
    said = tuple([message.key for message in transcript.messages])
    chain = [tree.start(exchange.scenario, exchange.dialect, transcript.root)]
    for key in said:
        chain.append(tree.link(chain[-1], key))
    agent = None if exchange.agent is None else names.find(reader.db, exchange.agent)
    keys = tuple(dict.fromkeys((*exchange.session_keys, *transcript.keys)))
    chore = kinds.is_chore(transcript.messages)
    incoming = Incoming(exchange, transcript, scenario, agent, chain, b"", said=said, chore=chore, keys=keys)
    return place(reader.db, incoming)
