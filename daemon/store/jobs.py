"""Jobs and what they claim: rows that only the writer's thread changes.

A job that is over never changes again. Claims are atomic and unique by recipe and thing; a job that failed or was
cancelled gives them back in the same transaction, so that nothing is used up by a run that came to nothing.
"""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from daemon.core.errors import Conflict, NotFound, UsageError
from daemon.core.learning import JobRow, JobState, Outcome, Progress
from daemon.store import pages
from daemon.store.connection import Reader
from daemon.store.experience import ELIGIBLE, content_of
from daemon.store.names import Names

_OPEN: Final = "state IN ('queued', 'running')"
_CHANGEABLE: Final = frozenset(
    {"state", "started_ns", "ended_ns", "attempts", "mark", "stalled", "progress", "message", "outcome", "release_id",
     "error"}
)  # fmt: skip
_ROW: Final = """SELECT j.id, j.uid, j.scenario, j.recipe, j.state, j.created_ns, j.config, j.started_ns, j.ended_ns,
    j.attempts, j.progress, j.message, j.outcome, j.release_id, j.error,
    (SELECT count(*) FROM claim c WHERE c.job = j.id AND c.kind = 'record'),
    (SELECT json_group_array(i.uid) FROM claim c JOIN instruction i ON i.id = c.item
        WHERE c.job = j.id AND c.kind = 'instruction')
    FROM job j"""


@dataclass(frozen=True, slots=True)
class NewJob:
    id: str
    scenario: str
    recipe: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """Receipts, report ids and instruction ids that a job is about to use."""

    records: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a job's directory was at its last start, and how many starts in a row found it so."""

    mark: str
    stalled: int


# -- writing: inside the writer's transaction ---------------------------------------------------------


def create(db: sqlite3.Connection, names: Names, new: NewJob) -> JobRow:
    seq = db.execute("SELECT coalesce(max(seq), 0) FROM record").fetchone()[0]
    report = db.execute("SELECT coalesce(max(id), 0) FROM report").fetchone()[0]
    db.execute(
        """INSERT INTO job (uid, scenario, recipe, config, state, created_ns, seen_seq, seen_report)
        VALUES (?,?,?,?,?,?,?,?)""",
        (new.id, names.id(db, new.scenario), new.recipe, json.dumps(dict(new.config), sort_keys=True),
         JobState.QUEUED, time.time_ns(), seq, report),
    )  # fmt: skip
    return _job(db, names, new.id)


def change(db: sqlite3.Connection, names: Names, id: str, changes: Mapping[str, object]) -> JobRow:
    """Raises NotFound, and Conflict for a job that is over."""
    assert changes.keys() <= _CHANGEABLE, changes
    row = db.execute("SELECT id, state FROM job WHERE uid = ?", (id,)).fetchone()
    if row is None:
        raise _unknown(id)
    if JobState(row[1]).over:
        raise Conflict(f"job {id} is {row[1]}", hint=f"reef jobs show {id}")
    values = {name: json.dumps(_progress(value)) if name == "progress" else value for name, value in changes.items()}
    assignments = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE job SET {assignments} WHERE id = ?", (*values.values(), row[0]))
    if changes.get("state") in (JobState.FAILED, JobState.CANCELLED):
        db.execute("DELETE FROM claim WHERE job = ?", (row[0],))
    return _job(db, names, id)


def claim(db: sqlite3.Connection, names: Names, id: str, wanted: Claim) -> JobRow:
    """All of it or nothing; the same again by the same job is fine. Raises NotFound for what the job's scenario has
    not, UsageError for a record that may not train, Conflict for what another job of the recipe holds or used.
    """
    row = db.execute("SELECT id, scenario, recipe, state FROM job WHERE uid = ?", (id,)).fetchone()
    if row is None:
        raise _unknown(id)
    job, scenario, recipe, state = row
    if JobState(state).over:
        raise Conflict(f"job {id} is {state}", hint=f"reef jobs show {id}")
    rows: list[tuple[str, str, int, bytes | None]]
    rows = [("record", recipe, *_record(db, scenario, receipt)) for receipt in wanted.records]
    rows += [("report", recipe, _item(db, "report", scenario, uid), None) for uid in wanted.reports]
    rows += [("instruction", "", _instruction(db, scenario, recipe, uid), None) for uid in wanted.instructions]
    for kind, whose, item, content in rows:
        holder = db.execute(
            """SELECT job FROM claim WHERE recipe = ?1 AND job <> ?4 AND ((kind = ?2 AND item = ?3)
            OR (content IS NOT NULL AND content = ?5)) LIMIT 1""",
            (whose, kind, item, job, content),
        ).fetchone()
        if holder is not None:
            other = db.execute("SELECT uid FROM job WHERE id = ?", holder).fetchone()[0]
            raise Conflict(f"{kind} {item} is claimed by {other}", hint="select again")
    db.executemany(
        "INSERT OR IGNORE INTO claim (recipe, kind, item, job, content) VALUES (?,?,?,?,?)",
        [(whose, kind, item, job, content) for kind, whose, item, content in rows],
    )
    return _job(db, names, id)


# -- reading ----------------------------------------------------------------------------------------------


def job(reader: Reader, id: str) -> JobRow:
    """Raises NotFound."""
    return _job(reader.db, reader.names, id)


def jobs(
    reader: Reader, scenario: str | None = None, limit: int = 50, before: str | None = None
) -> tuple[list[JobRow], str | None]:
    """Newest first, with the cursor of the next page."""
    wanted = {"j.scenario = (SELECT id FROM name WHERE text = ?)": scenario}
    rows, cursor = pages.rows(reader.db, _ROW, wanted, limit=limit, before=before)
    return [_made(reader.db, reader.names, row) for row in rows], cursor


def open_jobs(reader: Reader) -> list[JobRow]:
    """Those that are not over, oldest first."""
    rows = reader.db.execute(f"{_ROW} WHERE j.{_OPEN} ORDER BY j.id").fetchall()
    return [_made(reader.db, reader.names, row) for row in rows]


def stand(reader: Reader, id: str) -> Stand:
    row = reader.db.execute("SELECT mark, stalled FROM job WHERE uid = ?", (id,)).fetchone()
    if row is None:
        raise _unknown(id)
    return Stand(row[0], row[1])


def seen(reader: Reader, scenario: str, recipe: str) -> tuple[int, int]:
    """The newest record's seq and report's id that the recipe's last job could know of; zeros before the first."""
    row = reader.db.execute(
        "SELECT seen_seq, seen_report FROM job WHERE scenario = ? AND recipe = ? ORDER BY id DESC LIMIT 1",
        (reader.names.find(reader.db, scenario), recipe),
    ).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


def claimed(reader: Reader, id: str) -> Claim:
    """What a job holds."""
    number = _number(reader.db, id)
    parts = {
        kind: tuple(
            uid
            for (uid,) in reader.db.execute(
                f"""SELECT t.{name} FROM claim c JOIN {kind} t ON t.{key} = c.item
                WHERE c.job = ? AND c.kind = '{kind}' ORDER BY c.item""",
                (number,),
            )
        )
        for kind, name, key in (("record", "receipt", "seq"), ("report", "uid", "id"), ("instruction", "uid", "id"))
    }
    return Claim(parts["record"], parts["report"], parts["instruction"])


def _record(db: sqlite3.Connection, scenario: int, receipt: str) -> tuple[int, bytes]:
    row = db.execute(
        f"""SELECT r.seq, q.chain, m.key, {ELIGIBLE} FROM record r JOIN request q ON q.seq = r.seq
        LEFT JOIN message m ON m.id = q.answer WHERE r.receipt = ? AND r.scenario = ?""",
        (receipt, scenario),
    ).fetchone()
    if row is None:
        raise NotFound(f"the job's scenario has no record {receipt!r}", hint="reef traces list")
    if not row[3] or row[2] is None:
        raise UsageError(f"record {receipt!r} may not train", hint="claim what the stream offers")
    return row[0], content_of(row[1], row[2])


def _item(db: sqlite3.Connection, table: str, scenario: int, uid: str) -> int:
    row = db.execute(f"SELECT id FROM {table} WHERE scenario = ? AND uid = ?", (scenario, uid)).fetchone()
    if row is None:
        raise NotFound(f"the job's scenario has no {table} {uid!r}")
    return int(row[0])


def _instruction(db: sqlite3.Connection, scenario: int, recipe: str, uid: str) -> int:
    item = _item(db, "instruction", scenario, uid)
    whose = db.execute("SELECT recipe FROM instruction WHERE id = ?", (item,)).fetchone()[0]
    if whose not in (None, recipe):
        raise UsageError(f"instruction {uid!r} is for {whose}", hint="claim what the stream offers")
    return item


def _number(db: sqlite3.Connection, id: str) -> int:
    row = db.execute("SELECT id FROM job WHERE uid = ?", (id,)).fetchone()
    if row is None:
        raise _unknown(id)
    return int(row[0])


def _unknown(id: str) -> NotFound:
    return NotFound(f"no job {id!r}", hint="reef jobs list")


def _progress(value: object) -> object:
    if isinstance(value, Progress):
        return [value.step, value.done, value.total, value.note]
    return None


def _job(db: sqlite3.Connection, names: Names, id: str) -> JobRow:
    row = db.execute(f"{_ROW} WHERE j.uid = ?", (id,)).fetchone()
    if row is None:
        raise _unknown(id)
    return _made(db, names, row)


def _made(db: sqlite3.Connection, names: Names, row: Sequence[Any]) -> JobRow:
    _, uid, scenario, recipe, state, created, config, started, ended, attempts, progress, *rest = row
    message, outcome, release, error, records, instructions = rest
    at = json.loads(progress) if progress else None
    return JobRow(
        id=uid, scenario=names.text(db, scenario), recipe=recipe, state=JobState(state), created_ns=created,
        config=json.loads(config), started_ns=started, ended_ns=ended, attempts=attempts,
        progress=Progress(*at) if at else None, message=message, outcome=Outcome(outcome) if outcome else None,
        release_id=release, error=error, records=records,
        instructions=tuple(json.loads(instructions)),
    )  # fmt: skip
