"""Reports: feedback that names receipts. Append-only; a person may take one back, and the row stays.

The published protocol: references are receipts of the same scenario, each once; the same id with the same content is
idempotent, with other content a conflict; no references means the scenario's last session.
"""

import json
import math
import sqlite3
import time
from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from daemon.core.errors import Conflict, NotFound, UnknownReference, UsageError
from daemon.core.rows import NewReport, ReportRow
from daemon.store.connection import Reader, in_parts
from daemon.store.names import Names
from daemon.store.preparing import Redact
from daemon.store.sessions import last_session

_MOST_REFERENCES: Final = 1000
_TRAINS: Final = "(kind IN ('main', 'subagent') OR retry_of IS NOT NULL) AND end = 'ok'"


def check(report: NewReport) -> None:
    """What can be refused without the database. Raises UsageError."""
    if report.score is not None and not math.isfinite(report.score):
        raise UsageError(f"score {report.score} is not a finite number")
    if report.score is None and not report.feedback and not report.metadata:
        raise UsageError("the report says nothing", hint="give a score, feedback or metadata")
    if len(report.references) > _MOST_REFERENCES:
        raise UsageError(f"{len(report.references)} references, at most {_MOST_REFERENCES} are allowed")
    twice = next((r for n, r in enumerate(report.references) if r in report.references[:n]), None)
    if twice is not None:
        raise UsageError(f"the reference {twice!r} is named twice")


def report(db: sqlite3.Connection, names: Names, new: NewReport, redact: Redact) -> tuple[ReportRow, bool]:
    """Store ``new`` inside the writer's transaction. Returns its row and whether it was created just now."""
    scenario = names.find(db, new.scenario)
    feedback = None if new.feedback is None else redact(new.feedback.encode("utf-8", "replace"))[0].decode()
    metadata = redact(json.dumps(dict(new.metadata), ensure_ascii=False, sort_keys=True).encode("utf-8", "replace"))[0]
    content = _content(new.score, feedback, new.references, metadata)
    if scenario is not None:
        known = db.execute(
            "SELECT id, content FROM report WHERE scenario = ? AND uid = ?", (scenario, new.id)
        ).fetchone()
        if known is not None and known[1] != content:
            raise Conflict(f"report {new.id!r} exists with other content", hint="send it under a new id")
        if known is not None:
            return _rows(db, names, [known[0]])[0], False
    if db.execute("SELECT 1 FROM record WHERE receipt = ?", (new.id,)).fetchone() is not None:
        raise Conflict(f"{new.id!r} is the id of a record", hint="send the report under a new id")
    references = _references(db, names, new, scenario)
    cursor = db.execute(
        "INSERT INTO report (uid, scenario, score, feedback, metadata, content, created_ns) VALUES (?,?,?,?,?,?,?)",
        (new.id, scenario, new.score, feedback, metadata.decode(), content, time.time_ns()),
    )
    id = cursor.lastrowid or 0
    db.executemany(
        "INSERT INTO reference VALUES (?,?,?,?)", [(id, n, seq, session) for n, (seq, session) in enumerate(references)]
    )
    db.execute("UPDATE tally SET reports = reports + 1")
    _rate(db, id)
    return _rows(db, names, [id])[0], True


def undo(
    db: sqlite3.Connection, names: Names, scenario: str | None, receipt: str | None, *, report: str | None = None
) -> ReportRow:
    """Take back the last report (on that record, in that scenario, of that id) that still stands. Raises NotFound."""
    where: list[str] = ["undone_ns IS NULL"]
    values: list[object] = []
    if scenario is not None:
        where.append("scenario = ?")
        values.append(names.find(db, scenario))
    if receipt is not None:
        where.append("id IN (SELECT report FROM reference WHERE seq = (SELECT seq FROM record WHERE receipt = ?))")
        values.append(receipt)
    if report is not None:
        where.append("uid = ?")
        values.append(report)
    row = db.execute(f"SELECT id FROM report WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT 1", values).fetchone()
    if row is None:
        about = f" about {receipt!r}" if receipt is not None else ""
        named = f" {report!r}" if report is not None else ""
        raise NotFound(f"no report{named}{about} to undo", hint="reef traces list")
    db.execute("UPDATE report SET undone_ns = ? WHERE id = ?", (time.time_ns(), row[0]))
    _rate(db, row[0])
    return _rows(db, names, [row[0]])[0]


def scores(reader: Reader, seqs: Sequence[int]) -> dict[int, float]:
    """The last rating that stands on each of these records; those without one are left out."""
    found: dict[int, float] = {}
    for part, marks in in_parts(seqs):
        sql = f"""SELECT f.seq, p.score FROM reference f JOIN report p ON p.id = f.report WHERE f.seq IN ({marks})
            AND p.undone_ns IS NULL AND p.score IS NOT NULL ORDER BY p.id"""
        found |= dict(reader.db.execute(sql, part))
    return found


def reports_on(reader: Reader, receipts: Sequence[str]) -> dict[str, list[ReportRow]]:
    """The reports that name each of ``receipts``, oldest first, undone ones included; a receipt without any is left
    out."""
    pairs: list[tuple[str, int]] = []
    for part, marks in in_parts(receipts):
        sql = f"""SELECT r.receipt, f.report FROM record r JOIN reference f ON f.seq = r.seq
            WHERE r.receipt IN ({marks}) ORDER BY f.report"""
        pairs += reader.db.execute(sql, part)
    ids = sorted({id for _, id in pairs})
    rows = dict(zip(ids, _rows(reader.db, reader.names, ids), strict=True))
    found: defaultdict[str, list[ReportRow]] = defaultdict(list)
    for receipt, id in pairs:
        found[receipt].append(rows[id])
    return dict(found)


def said_of_all(score: float | None, feedback: str | None, metadata: str, content: bytes) -> bool:
    """Whether a stored report named no receipt of its own: its session's answers were filled in."""
    return content == _content(score, feedback, (), metadata.encode())


def _content(score: float | None, feedback: str | None, references: Sequence[str], metadata: bytes) -> bytes:
    """Hash of what was said, as it was said: references that were filled in don't count."""
    said = json.dumps([score, feedback, list(references)], ensure_ascii=False).encode("utf-8", "replace")
    return blake2b(said + b"\0" + metadata, digest_size=16).digest()


def _references(db: sqlite3.Connection, names: Names, new: NewReport, scenario: int | None) -> list[tuple[int, int]]:
    """The records meant, as (seq, session). Raises UnknownReference naming the first that this scenario never
    issued."""
    if new.references:
        found = []
        for receipt in new.references:
            row = db.execute(
                """SELECT seq, session FROM record WHERE scenario = ?2 AND (
                receipt = ?1 OR seq = (SELECT seq FROM imported WHERE receipt = ?1))""",
                (receipt, scenario),
            ).fetchone()
            if row is None:
                raise UnknownReference(f"scenario {new.scenario!r} has no record {receipt!r}", hint="reef traces list")
            found.append((row[0], row[1]))
        return found
    session = None if scenario is None else last_session(db, names, new.scenario)
    rows = db.execute(
        f"SELECT seq, session FROM record WHERE session = ? AND {_TRAINS} ORDER BY seq DESC LIMIT ?",
        (session, _MOST_REFERENCES),
    ).fetchall()
    if not rows:
        whose = f"scenario {new.scenario!r}" if session is None else f"the last session of scenario {new.scenario!r}"
        raise UnknownReference(f"{whose} has no answer to report on yet", hint="reef traces list")
    return rows[::-1]


def _rate(db: sqlite3.Connection, report: int) -> None:
    """Bring the sessions that a report names up to date."""
    rate(db, [id for (id,) in db.execute("SELECT DISTINCT session FROM reference WHERE report = ?", (report,))])


def rate(db: sqlite3.Connection, sessions: Sequence[int]) -> None:
    """Bring sessions up to date: how many reports about each stand, and the last score among them."""
    standing = (
        """FROM report p WHERE p.undone_ns IS NULL AND p.id IN (SELECT report FROM reference WHERE session = ?1)"""
    )
    for session in sessions:
        db.execute(
            f"""UPDATE session SET reports = (SELECT count(*) {standing}),
            score = (SELECT p.score {standing} AND p.score IS NOT NULL ORDER BY p.id DESC LIMIT 1) WHERE id = ?1""",
            (session,),
        )


def _rows(db: sqlite3.Connection, names: Names, ids: Sequence[int]) -> list[ReportRow]:
    rows = []
    for id in ids:
        uid, scenario, score, feedback, metadata, created, undone = db.execute(
            "SELECT uid, scenario, score, feedback, metadata, created_ns, undone_ns FROM report WHERE id = ?", (id,)
        ).fetchone()
        references = db.execute(
            "SELECT r.receipt FROM reference f JOIN record r ON r.seq = f.seq WHERE f.report = ? ORDER BY f.position",
            (id,),
        )
        rows.append(
            ReportRow(
                uid, names.text(db, scenario), score, feedback, tuple(receipt for (receipt,) in references),
                json.loads(metadata), created, undone,
            )
        )  # fmt: skip
    return rows
