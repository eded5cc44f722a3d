"""Which session a call will be recorded in that is still being answered. Reads only, and as little as placing does."""

from daemon.store import kinds, tree
from daemon.store.connection import Reader
from daemon.store.placing import Incoming, place
from daemon.store.preparing import Prepared


def session(reader: Reader, new: Prepared) -> str | None:
    """Its id; None where it will be a new one."""
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
    found = place(reader.db, incoming).session
    if found is None:
        return None
    (uid,) = reader.db.execute("SELECT uid FROM session WHERE id = ?", (found,)).fetchone()
    return str(uid)
