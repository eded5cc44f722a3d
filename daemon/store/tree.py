"""The prefix tree: which earlier record a request goes on from.

Every record leaves points: the chain hash where its request ends and, with an answer, where the answer does. A request
whose own chain passes through such a point continues that record. A chain starts from scenario, dialect and what
stands before the messages, so nothing matches across those.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from daemon.core.records import Dialect, End, Kind
from daemon.store.connection import in_parts

#: Records looked at where many share a point (the same first prompt sent a thousand times).
_CANDIDATES: Final = 16
#: Messages before an answer that tell it from an equal one somewhere else.
_TAIL: Final = 3
_LEAF: Final = "r.seq IN (s.main_seq, s.answer_seq) OR r.kind IN ('subagent', 'side')"
_AT: Final = f"""SELECT p.seq, r.session, r.kind, r.end, p.answered, {_LEAF}, q.subagent
    FROM point p JOIN record r ON r.seq = p.seq JOIN session s ON s.id = r.session JOIN request q ON q.seq = p.seq
    WHERE p.hash = ? AND (? IS NULL OR r.session = ?) ORDER BY p.seq DESC LIMIT ?"""


@dataclass(frozen=True, slots=True)
class Found:
    """A record whose point a chain passes through, ``covered`` messages in. ``leaf``: nothing has continued it yet."""

    seq: int
    session: int
    kind: Kind
    end: End
    answered: bool
    leaf: bool
    subagent: str | None
    covered: int


def start(scenario: str, dialect: Dialect, root: bytes) -> bytes:
    """The chain before the first message."""
    return blake2b(b"\0".join((scenario.encode(), dialect.encode(), root)), digest_size=16).digest()


def link(before: bytes, key: bytes) -> bytes:
    """The chain after one more message."""
    return blake2b(before + key, digest_size=16).digest()


def points(chain: Sequence[bytes], answer: bytes | None, *, stray: bool) -> list[tuple[bytes, bool]]:
    """Where later requests can join this one: (hash, answered). ``chain`` has one entry more than there are messages.

    ``stray``: the last message may be one that the agent leaves out of its next request (OpenClaw adds such a note
    after tool results), so the answer is also expected right behind the message before it.
    """
    found = [(chain[-1], False)] if len(chain) > 1 else []
    if answer is not None:
        found.append((link(chain[-1], answer), True))
        if stray:
            found.append((link(chain[-2], answer), True))
    return found


def tail(scenario: str, dialect: Dialect, said: Sequence[bytes], at: int) -> bytes | None:
    """A point for an answer by the messages right before it: where an agent that resumes writes the beginning anew.

    ``said[at]`` is the answer's key. None where so little stands before it that it is the beginning itself.
    """
    if at < _TAIL:
        return None
    words = b"\0".join((b"tail", scenario.encode(), dialect.encode()))
    return blake2b(words + b"".join(said[at - _TAIL : at + 1]), digest_size=16).digest()


def find_tail(db: sqlite3.Connection, point: bytes, covered: int, session: int | None = None) -> Found | None:
    """The latest record with that point, where a single session has it."""
    found = _at(db, point, covered, session)
    return found[0] if found and _one_session(found) else None


def at_end(db: sqlite3.Connection, chain: Sequence[bytes], session: int | None) -> list[Found]:
    """The latest records with a point where the chain ends."""
    return _at(db, chain[-1], len(chain) - 1, session)


def find(
    db: sqlite3.Connection, chain: Sequence[bytes], end: list[Found], *, session: int | None, subagent: str | None
) -> Found | None:
    """The record that this request continues: the longest prefix wins, then the same sub-agent (several may be given
    the same words at once), then one that nothing continued, then the latest.

    ``end`` is what is `at_end`. ``session`` restricts the search to one session. Without it a match on a request alone
    (its answer came back altered, or never came) counts only where a single session has it.
    """
    last = len(chain) - 1
    known: set[bytes] | None = None
    for covered in range(last, 0, -1):
        if covered < last - 1:  # no conversation that goes on: one look for all of its messages
            known = _known(db, chain[1 : covered + 1]) if known is None else known
            if chain[covered] not in known:
                continue
        found = end if covered == last else _at(db, chain[covered], covered, session)
        if not found:
            continue
        usable = [item for item in found if item.answered] or [
            item for item in found if covered < last and (session is not None or _one_session(found))
        ]
        if usable:
            return max(usable, key=lambda item: (item.subagent == subagent, item.leaf, item.seq))
    return None


def same_request(
    db: sqlite3.Connection, end: list[Found], hash: bytes, *, inside: bool, subagent: str | None
) -> Found | None:
    """The same sub-agent's latest record with this request: what is `at_end` of its chain and, unless that was looked
    for ``inside`` a known session, has the ``hash`` of its bytes.

    Within one the messages decide: Claude Code tries again without streaming and with other limits.
    """
    for item in end:
        if not item.answered and item.subagent == subagent:
            row = db.execute("SELECT hash FROM request WHERE seq = ?", (item.seq,)).fetchone()
            if inside or row[0] == hash:
                return item
    return None


def at(db: sqlite3.Connection, seq: int) -> Found | None:
    """A record by its seq, with nothing of it sent again."""
    row = db.execute(
        f"""SELECT r.seq, r.session, r.kind, r.end, 1, {_LEAF}, q.subagent FROM record r
        JOIN session s ON s.id = r.session JOIN request q ON q.seq = r.seq WHERE r.seq = ?""",
        (seq,),
    ).fetchone()
    return None if row is None else _found(row, 0)


def resumed(db: sqlite3.Connection, found: Found, main: int | None) -> bool:
    """Whether ``found`` was broken off and all that the main line did since is one request to go on with its answer.

    Qwen Code asks so in a message of its own making, and leaves it out again once it has the rest.
    """
    if found.end is End.OK:
        return False
    row = db.execute("SELECT parent FROM record WHERE seq = ?", (main,)).fetchone()
    return row is not None and row[0] == found.seq


def last_of(db: sqlite3.Connection, session: int, subagent: str | None) -> int | None:
    """A sub-agent's latest record: what a sub-agent of its own was started from."""
    seq: int | None
    (seq,) = db.execute(
        "SELECT max(r.seq) FROM record r JOIN request q ON q.seq = r.seq WHERE r.session = ? AND q.subagent = ?",
        (session, subagent),
    ).fetchone()
    return seq


def _one_session(found: list[Found]) -> bool:
    return len({item.session for item in found}) == 1


def _known(db: sqlite3.Connection, hashes: Sequence[bytes]) -> set[bytes]:
    """Those at which a record has a point."""
    found: set[bytes] = set()
    for part, _ in in_parts(hashes):
        sql = f"""WITH asked (hash) AS (VALUES {",".join(["(?)"] * len(part))}) SELECT hash FROM asked
            WHERE EXISTS (SELECT 1 FROM point p WHERE p.hash = asked.hash)"""
        found.update(hash for (hash,) in db.execute(sql, part))
    return found


def _at(db: sqlite3.Connection, hash: bytes, covered: int, session: int | None) -> list[Found]:
    return [_found(row, covered) for row in db.execute(_AT, (hash, session, session, _CANDIDATES))]


def _found(row: tuple[Any, ...], covered: int) -> Found:
    seq, owner, kind, end, answered, leaf, subagent = row
    return Found(seq, owner, Kind(kind), End(end), bool(answered), bool(leaf), subagent, covered)
