"""Records and reports from elsewhere, all of a batch or none, each once however often it is sent.

A line is known by its id: the same content again is no second record, other content is a conflict. What the daemon saw
on the wire itself is worth more than any file about it: such a line only gives the record another name.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from daemon.core.errors import Conflict, ReefError, UsageError
from daemon.core.records import Appended, Exchange, Transcript
from daemon.core.rows import NewReport
from daemon.store import feedback, tree
from daemon.store.ledger import Ledger
from daemon.store.names import Names
from daemon.store.preparing import Prepared, Redact, prepare


@dataclass(frozen=True, slots=True)
class NewRecord:
    """``line`` is what was sent; the exchange's receipt is the line's id."""

    line: bytes
    exchange: Exchange
    parse: Callable[[], Transcript]


Line = NewRecord | NewReport


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch, parsed outside of the transaction. Records have the hash of their content beside them."""

    items: tuple[tuple[Prepared, bytes] | NewReport, ...]


def prepared(lines: Sequence[Line], redact: Redact) -> Batch:
    """Parse and check what can be without the database. Raises UsageError."""
    items: list[tuple[Prepared, bytes] | NewReport] = []
    for line in lines:
        if isinstance(line, NewReport):
            feedback.check(line)
            if not line.references:
                raise UsageError(f"the report {line.id!r} names no record", hint="give it references")
            items.append(line)
        else:
            content = blake2b(redact(line.line)[0], digest_size=16).digest()
            items.append((prepare(line.exchange, line.parse, redact), content))
    return Batch(tuple(items))


class Importer:
    """The writer's side of imports. Used by the writer thread alone."""

    def __init__(self, ledger: Ledger, names: Names, redact: Redact) -> None:
        self._ledger = ledger
        self._names = names
        self._redact = redact

    def keep(self, db: sqlite3.Connection, batch: Batch) -> list[Appended]:
        """Store a batch inside the writer's transaction; returns the new records.

        Raises Conflict and UnknownReference; then nothing of it is written.
        """
        mark = self._ledger.mark()
        db.execute("SAVEPOINT batch")
        try:
            found = [self._one(db, item) for item in batch.items]
        except ReefError:
            db.execute("ROLLBACK TO batch")
            db.execute("RELEASE batch")
            self._names.forget()
            self._ledger.forget(mark)
            raise
        db.execute("RELEASE batch")
        return [one for one in found if one is not None]

    def _one(self, db: sqlite3.Connection, item: tuple[Prepared, bytes] | NewReport) -> Appended | None:
        if isinstance(item, NewReport):
            feedback.report(db, self._names, item, self._redact)
            return None
        new, content = item
        id = new.exchange.receipt
        known = db.execute(
            "SELECT i.content, r.scenario FROM imported i JOIN record r ON r.seq = i.seq WHERE i.receipt = ?", (id,)
        ).fetchone()
        if known is not None and known != (content, self._names.find(db, new.exchange.scenario)):
            raise Conflict(f"record {id!r} exists with other content", hint="send it under a new id")
        if known is not None or self._is_recorded(db, new.exchange):
            return None
        seq = self._on_the_wire(db, new)
        appended = self._ledger.append(db, new) if seq is None else None
        seq = seq if appended is None else appended.seq
        db.execute("INSERT INTO imported VALUES (?,?,?)", (id, seq, content))
        return appended

    def _is_recorded(self, db: sqlite3.Connection, exchange: Exchange) -> bool:
        """Whether the id is a receipt of ours. Raises Conflict where it stands for something else."""
        row = db.execute("SELECT scenario FROM record WHERE receipt = ?", (exchange.receipt,)).fetchone()
        if row is not None and row[0] != self._names.find(db, exchange.scenario):
            raise Conflict(f"record {exchange.receipt!r} is in another scenario", hint="send it under a new id")
        scenario = self._names.find(db, exchange.scenario)
        about = db.execute(
            "SELECT 1 FROM report WHERE scenario = ? AND uid = ?", (scenario, exchange.receipt)
        ).fetchone()
        if about is not None:
            raise Conflict(f"{exchange.receipt!r} is the id of a report", hint="send the record under a new id")
        return row is not None

    def _on_the_wire(self, db: sqlite3.Connection, new: Prepared) -> int | None:
        """The record of the same exchange, known by its answer's id. A file that names none is of what was said alone:
        the same prompt with the same answer is then the same exchange."""
        if new.transcript.answer_id is None:
            return _said_on_the_wire(db, new)
        row = db.execute(
            "SELECT seq FROM answer_id WHERE scenario = ? AND id = ?",
            (self._names.find(db, new.exchange.scenario), new.transcript.answer_id),
        ).fetchone()
        return None if row is None else int(row[0])


def _said_on_the_wire(db: sqlite3.Connection, new: Prepared) -> int | None:
    """The record of this prompt and answer that did not come from a file itself, in the same dialect."""
    exchange, transcript = new.exchange, new.transcript
    if transcript.answer is None or not transcript.messages:
        return None
    chain = tree.start(exchange.scenario, exchange.dialect, transcript.root)
    for message in transcript.messages:
        chain = tree.link(chain, message.key)
    row = db.execute(
        """SELECT p.seq FROM point p JOIN record r ON r.seq = p.seq JOIN request q ON q.seq = p.seq
        WHERE p.hash = ? AND p.answered AND q.chain = ?
        AND NOT EXISTS (SELECT 1 FROM imported i WHERE i.receipt = r.receipt) LIMIT 1""",
        (tree.link(chain, transcript.answer.key), chain),
    ).fetchone()
    return None if row is None else int(row[0])
