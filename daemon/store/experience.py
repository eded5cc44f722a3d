"""What a scenario's records offer to learn from: who may train, what was said about each, what is used up already.

These queries are the only way in; the split, prompts of tasks and staleness are added in `daemon.learning.stream`. A
record may train when it is a turn (not a side call), ended ok, held no secret and has an answer; it does so once a
recipe, and another with the same prompt and answer counts as the same.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from daemon.core.learning import Feedback
from daemon.core.records import Dialect, StoredMessage
from daemon.store import messages as content
from daemon.store.connection import Reader, in_parts
from daemon.store.feedback import said_of_all
from daemon.store.requests import message_ids
from daemon.store.spans import answer_span

#: Of ``record r``. A retry stands for what it repeats.
ELIGIBLE: Final = """r."end" = 'ok' AND r.redacted = 0 AND r.kind <> 'side'
    AND (r.kind <> 'retry' OR (SELECT f.kind FROM record f WHERE f.seq = r.retry_of) IN ('main', 'subagent'))"""
_FREE: Final = """NOT EXISTS (SELECT 1 FROM claim c
    WHERE c.recipe = :recipe AND c.kind = 'record' AND c.item = r.seq AND c.job <> :job)"""
#: Of ``report p``.
_UNUSED: Final = """NOT EXISTS (SELECT 1 FROM claim c
    WHERE c.recipe = :recipe AND c.kind = 'report' AND c.item = p.id AND c.job <> :job)"""
#: Reports that carry a signal, by its name.
_CARRIES: Final = {
    "note": "coalesce(p.feedback, '') <> ''",
    "mark": "p.score IS NOT NULL",
    "edit": "json_extract(p.metadata, '$.edited') <> ''",
}
#: How the dialects call an answer that was cut off.
_AT_LIMIT: Final = "'length', 'max_tokens', 'max_output_tokens'"


@dataclass(frozen=True, slots=True)
class Wanted:
    """``signals`` of ``note``, ``mark``, ``edit``: only records with a report that carries one; none: all records.

    ``job`` may take again what it claimed itself. ``after`` and ``limit`` make pages, by seq.
    """

    scenario: str
    recipe: str
    job: str | None = None
    signals: tuple[str, ...] = ()
    after: int = 0
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Raw:
    """One exchange as stored. ``content`` identifies prompt and answer; the messages stand between head and tail."""

    seq: int
    receipt: str
    session: str
    dialect: Dialect
    release_id: str
    weights: str | None
    content: bytes
    head: bytes
    tail: bytes
    messages: tuple[StoredMessage, ...]
    answer: StoredMessage
    feedback: tuple[Feedback, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: bool


def content_of(chain: bytes, answer_key: bytes) -> bytes:
    """Equal where the canonical prompt and answer are."""
    return blake2b(chain + answer_key, digest_size=16).digest()


def page(reader: Reader, wanted: Wanted, keep: Callable[[str], bool]) -> tuple[list[Raw], int | None]:
    """A page by seq, with where the next one begins (None: there is none). ``keep`` decides by the session's id."""
    db, job = reader.db, _job(reader, wanted.job)
    scenario = reader.names.find(db, wanted.scenario)
    values: dict[str, Any] = {"scenario": scenario, "after": wanted.after, "recipe": wanted.recipe, "job": job}
    picked: list[int] = []
    sessions: dict[int, bool] = {}
    for seq, session in _walk(db, wanted.signals, values):
        if session not in sessions:
            sessions[session] = keep(db.execute("SELECT uid FROM session WHERE id = ?", (session,)).fetchone()[0])
        if sessions[session]:
            picked.append(seq)
            if len(picked) == wanted.limit:
                break
    rows = _rows(db, picked)
    used = _used(db, wanted.recipe, job, [content_of(row[7], row[8]) for row in rows])
    said = feedback_on(reader, [row[0] for row in rows])
    found = list(_raws(reader, [row for row in rows if content_of(row[7], row[8]) not in used], said))
    return found, picked[-1] if len(picked) == wanted.limit else None


def notes(reader: Reader, scenario: str, recipe: str, job: str | None = None) -> list[Feedback]:
    """Standing reports with text that no other job of the recipe used, oldest first."""
    rows = reader.db.execute(
        f"""SELECT p.uid, p.score, p.feedback, p.metadata, p.content FROM report p
        WHERE p.scenario = :scenario AND p.undone_ns IS NULL AND {_CARRIES["note"]} AND {_UNUSED} ORDER BY p.id""",
        {"scenario": reader.names.find(reader.db, scenario), "recipe": recipe, "job": _job(reader, job)},
    )
    return [_feedback(row) for row in rows]


def units(reader: Reader, wanted: Wanted, since_report: int, keep: Callable[[str], bool]) -> int:
    """How much news there is, at most ``wanted.limit``: reports that carry one of the signals and can teach (a note
    always, a mark or an edit where it is about a record that may train); without signals, records that may.
    """
    db = reader.db
    values: dict[str, Any] = {
        "scenario": reader.names.find(db, wanted.scenario), "after": wanted.after, "recipe": wanted.recipe, "job": -1,
        "since": since_report,
    }  # fmt: skip
    found = 0
    if not wanted.signals:
        uids = db.execute(
            f"""SELECT (SELECT uid FROM session WHERE id = r.session) FROM record r
            WHERE r.scenario = :scenario AND r.seq > :after AND {ELIGIBLE} AND {_FREE}""",
            values,
        )
    else:
        about = f"""(SELECT s.uid FROM reference f JOIN record r ON r.seq = f.seq JOIN session s ON s.id = r.session
            WHERE f.report = p.id AND {ELIGIBLE} AND {_FREE} LIMIT 1)"""
        note = f"{_CARRIES['note']} AND {_UNUSED}" if "note" in wanted.signals else "0"
        said = _carried(set(wanted.signals) - {"note"}) or "0"
        uids = db.execute(
            f"""SELECT CASE WHEN {note} THEN '' WHEN {said} THEN {about} END FROM report p
            WHERE p.scenario = :scenario AND p.id > :since AND p.undone_ns IS NULL AND ({_carried(wanted.signals)})
            ORDER BY p.id""",
            values,
        )
    for (uid,) in uids:
        found += uid is not None and (uid == "" or keep(uid))
        if found >= wanted.limit:
            break
    return found


def scenarios(reader: Reader) -> list[str]:
    """Every scenario that has a session."""
    rows = reader.db.execute("SELECT text FROM name WHERE id IN (SELECT DISTINCT scenario FROM session) ORDER BY text")
    return [text for (text,) in rows]


def feedback_on(reader: Reader, seqs: Sequence[int]) -> dict[int, list[Feedback]]:
    """What was said about each record and not taken back, oldest first."""
    found: dict[int, list[Feedback]] = {}
    for part, marks in in_parts(seqs):
        rows = reader.db.execute(
            f"""SELECT f.seq, p.uid, p.score, p.feedback, p.metadata, p.content FROM reference f
            JOIN report p ON p.id = f.report WHERE f.seq IN ({marks}) AND p.undone_ns IS NULL
            ORDER BY p.id""",
            part,
        )
        for seq, *said in rows:
            found.setdefault(seq, []).append(_feedback(said))
    return found


def _walk(db: sqlite3.Connection, signals: Collection[str], values: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """(seq, session) of what may train and is free, in order; read lazily."""
    if not signals:
        yield from db.execute(
            f"""SELECT r.seq, r.session FROM record r INDEXED BY record_scenario
            WHERE r.scenario = :scenario AND r.seq > :after AND {ELIGIBLE} AND {_FREE} ORDER BY r.seq""",
            values,
        )
        return
    yield from db.execute(
        f"""SELECT r.seq, r.session FROM
        (SELECT DISTINCT f.seq FROM report p CROSS JOIN reference f ON f.report = p.id
            WHERE p.scenario = :scenario AND p.undone_ns IS NULL AND ({_carried(signals)}) AND f.seq > :after) AS d
        CROSS JOIN record r ON r.seq = d.seq WHERE {ELIGIBLE} AND {_FREE} ORDER BY r.seq""",
        values,
    )


def _carried(signals: Collection[str]) -> str:
    return " OR ".join(_CARRIES[name] for name in sorted(signals))


def _rows(db: sqlite3.Connection, seqs: Sequence[int]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for part, marks in in_parts(seqs):
        rows += db.execute(
            f"""SELECT r.seq, r.receipt, s.uid, r.dialect, r.release_id, r.weights, q.frame, q.chain, m.key, q.answer,
            coalesce(r.stop_reason, '') NOT IN ({_AT_LIMIT})
            FROM record r JOIN session s ON s.id = r.session JOIN request q ON q.seq = r.seq
            JOIN message m ON m.id = q.answer WHERE r.seq IN ({marks}) ORDER BY r.seq""",
            part,
        )
    return rows


def _used(db: sqlite3.Connection, recipe: str, job: int, hashes: Sequence[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for part, marks in in_parts(hashes):
        rows = db.execute(
            f"""SELECT content FROM claim WHERE recipe = ? AND job <> ? AND content IS NOT NULL
            AND content IN ({marks})""",
            (recipe, job, *part),
        )
        found.update(hash for (hash,) in rows)
    return found


def _raws(reader: Reader, rows: Sequence[tuple[Any, ...]], said: dict[int, list[Feedback]]) -> Iterator[Raw]:
    ids = {row[0]: message_ids(reader.db, row[0]) for row in rows}
    wanted = sorted({id for row in rows for id in (*ids[row[0]], row[9])})
    kept = dict(zip(wanted, content.messages(reader, wanted), strict=True))
    frames: dict[int, content.Frame] = {}
    for seq, receipt, session, dialect, release, weights, frame, chain, key, answer, ended in rows:
        if frame not in frames:
            frames[frame] = content.frame(reader, frame)
        completion, logprobs = answer_span(reader, seq)
        yield Raw(
            seq, receipt, session, Dialect(dialect), reader.names.text(reader.db, release),
            reader.names.optional_text(reader.db, weights), content_of(chain, key),
            frames[frame].head, frames[frame].tail, tuple(kept[id] for id in ids[seq]), kept[answer],
            tuple(said.get(seq, ())), completion, logprobs, bool(ended),
        )  # fmt: skip


def _feedback(row: Sequence[Any]) -> Feedback:
    uid, score, text, metadata, hash = row
    edited = json.loads(metadata).get("edited")
    return Feedback(
        id=uid, score=score, text=text or None, edit=edited if isinstance(edited, str) and edited else None,
        general=said_of_all(score, text, metadata, hash),
    )  # fmt: skip


def _job(reader: Reader, id: str | None) -> int:
    row = None if id is None else reader.db.execute("SELECT id FROM job WHERE uid = ?", (id,)).fetchone()
    return -1 if row is None else int(row[0])
