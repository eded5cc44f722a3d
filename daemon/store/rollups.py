"""Sums by hour and day, and which records began when. Counted in the transaction of each record, so they never drift.

Times are the wall clock's and may go back; `seq` never does. An hour knows the first and the last record that began in
it, which is how a list of a time span finds its ends without looking at every record.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from daemon.core.records import Usage
from daemon.core.rows import RollupRow
from daemon.store.connection import Reader, marks

Unit = Literal["hour", "day"]
NANOSECONDS: Final = {"hour": 3_600_000_000_000, "day": 86_400_000_000_000}
_SUMS: Final = ("records", "turns", "failed", "retries", "prompt_tokens", "cached_tokens", "completion_tokens",
    "duration_us")  # fmt: skip
_ADD: Final = f"""INSERT INTO rollup (unit, start, scenario, agent, model, {",".join(_SUMS)}, cost_usd)
    VALUES (?,?,?,?,?,{",".join("?" * len(_SUMS))},?) ON CONFLICT DO UPDATE SET
    {",".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)},
    cost_usd = coalesce(cost_usd + excluded.cost_usd, cost_usd, excluded.cost_usd)"""


@dataclass(frozen=True, slots=True)
class Counted:
    """What one record adds; ``turn`` as a session counts them."""

    seq: int
    started_ns: int
    scenario: int
    agent: int | None
    model: int
    turn: bool
    failed: bool
    retry: bool
    usage: Usage
    duration_us: int
    #: It is the first of a session.
    began: bool


class Counts:
    """What a transaction's records add, written at its end: all at once, since a batch falls into one hour or two."""

    def __init__(self) -> None:
        self._new: list[Counted] = []

    def add(self, one: Counted) -> None:
        self._new.append(one)

    def write(self, db: sqlite3.Connection) -> None:
        """Only inside the writer's transaction."""
        if not self._new:
            return
        db.executemany(_ADD, self._sums())
        hours: dict[int, list[int]] = {}
        for one in self._new:
            hours.setdefault(_hour(one.started_ns), []).append(one.seq)
        db.executemany(
            """INSERT INTO hour VALUES (?,?,?) ON CONFLICT DO UPDATE SET
            first_seq = min(first_seq, excluded.first_seq), last_seq = max(last_seq, excluded.last_seq)""",
            [(hour, min(seqs), max(seqs)) for hour, seqs in hours.items()],
        )
        db.execute(
            "UPDATE tally SET records = records + ?, sessions = sessions + ?",
            (len(self._new), sum(one.began for one in self._new)),
        )
        self.forget()

    def _sums(self) -> list[tuple[object, ...]]:
        """Rows of ``rollup``."""
        added: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
        paid: dict[tuple[object, ...], float] = {}
        for one in self._new:
            row = (
                1, one.turn, one.failed, one.retry, one.usage.prompt, one.usage.cached, one.usage.completion,
                one.duration_us,
            )  # fmt: skip
            for unit, length in NANOSECONDS.items():
                key = (unit, one.started_ns // length, one.scenario, one.agent or 0, one.model)
                added.setdefault(key, []).append(row)
                if one.usage.cost is not None:
                    paid[key] = paid.get(key, 0.0) + one.usage.cost
        return [(*key, *map(sum, zip(*rows, strict=True)), paid.get(key)) for key, rows in added.items()]

    def mark(self) -> int:
        """Where `forget` goes back to."""
        return len(self._new)

    def forget(self, mark: int = 0) -> None:
        del self._new[mark:]


def take_away(db: sqlite3.Connection, seqs: Sequence[int]) -> None:
    """What these records added, while they are there; a row that sums up nothing goes. In the writer's transaction.

    What was tried again and goes makes no turn of what stays, as a session counts them.
    """
    gone = marks(seqs)
    near = f"r.session IN (SELECT session FROM record WHERE seq IN ({gone}))"
    for unit, length in NANOSECONDS.items():
        rows = db.execute(
            f"""SELECT r.started_ns / {length}, r.scenario, coalesce(r.agent, 0), r.model_asked,
            sum(g), sum(r."end" = 'ok' AND (r.kind = 'main' OR f.kind IS 'main')),
            sum(g AND r."end" <> 'ok'), sum(g AND r.kind = 'retry'), sum(g * r.prompt_tokens),
            sum(g * r.cached_tokens), sum(g * r.completion_tokens), sum(g * r.duration_us),
            sum(CASE WHEN g THEN r.cost_usd END)
            FROM (SELECT *, seq IN ({gone}) AS g FROM record r WHERE {near}) r
            LEFT JOIN record f ON f.seq = r.retry_of WHERE g OR r.retry_of IN ({gone}) GROUP BY 1, 2, 3, 4""",
            (*seqs, *seqs, *seqs),
        ).fetchall()
        less = [(unit, *row[:4], *(None if value is None else -value for value in row[4:])) for row in rows]
        db.executemany(_ADD, less)
        db.executemany(
            """DELETE FROM rollup WHERE unit = ? AND start = ? AND scenario = ? AND agent = ? AND model = ?
            AND records < 1""",
            [(unit, *row[:4]) for row in rows],
        )


def bounds(db: sqlite3.Connection, since_ns: int | None, until_ns: int | None) -> tuple[int, int | None]:
    """Seqs that no record of that time span lies below or above. (1 << 62, 0) where there is none."""
    low, high = 0, None
    if since_ns is not None:
        (first,) = db.execute("SELECT min(first_seq) FROM hour WHERE hour >= ?", (_hour(since_ns),)).fetchone()
        low = 1 << 62 if first is None else first
    if until_ns is not None:
        (last,) = db.execute("SELECT max(last_seq) FROM hour WHERE hour <= ?", (_hour(until_ns),)).fetchone()
        high = last or 0
    return low, high


def rollups(
    reader: Reader, unit: Unit, *, since_ns: int, scenario: str | None = None, by: Sequence[str] = ()
) -> list[RollupRow]:
    """Newest first: one row for each hour or day, split by any of ``scenario``, ``agent`` and ``model``."""
    names, db = reader.names, reader.db
    keys: list[str] = [key for key in ("scenario", "agent", "model") if key in by]
    where, values = "unit = ? AND start >= ?", [unit, since_ns // NANOSECONDS[unit]]
    if scenario is not None:
        where, values = f"{where} AND scenario = ?", [*values, names.find(db, scenario) or -1]
    columns = ",".join(["start", *keys, *(f"sum({name})" for name in (*_SUMS, "cost_usd"))])
    group = ",".join(["start", *keys])
    rows = db.execute(f"SELECT {columns} FROM rollup WHERE {where} GROUP BY {group} ORDER BY start DESC", values)
    return [_row(reader, keys, row, NANOSECONDS[unit]) for row in rows]


def _row(reader: Reader, keys: list[str], row: tuple[Any, ...], length: int) -> RollupRow:
    start, ids, sums = row[0], row[1 : 1 + len(keys)], row[1 + len(keys) :]
    of = {key: reader.names.text(reader.db, id) if id else None for key, id in zip(keys, ids, strict=True)}
    return RollupRow(start * length, of.get("scenario"), of.get("agent"), of.get("model"), *sums)


def _hour(at_ns: int) -> int:
    return at_ns // NANOSECONDS["hour"]
