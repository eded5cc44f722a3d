"""Reading record rows: lists, one record, the last answer. Pages are keyset pages over ``seq``."""

import json
from collections.abc import Sequence

from daemon.core.errors import NotFound
from daemon.core.records import Dialect, End, Kind
from daemon.core.rows import RecordPlace, RecordRow
from daemon.store import pages
from daemon.store.connection import Reader
from daemon.store.placing import LATELY
from daemon.store.sessions import last_session, scopes

_ROW = """SELECT r.seq, r.receipt, s.uid, r.scenario, r.kind, r.dialect, r.end, r.status, r.stream, r.started_ns,
    r.duration_us, r.first_byte_us, r.engine, r.model_asked, r.model, r.release_id, r.weights, r.agent, r.prompt_tokens,
    r.cached_tokens, r.completion_tokens, r.stop_reason, r.error, r.preview, r.messages, r.redacted, p.receipt,
    r.edge, r.cost_usd
    FROM record r JOIN session s ON s.id = r.session LEFT JOIN record p ON p.seq = r.parent"""


def record(reader: Reader, receipt: str) -> RecordRow:
    row = reader.db.execute(f"{_ROW} WHERE r.receipt = ?", (receipt,)).fetchone()
    if row is None:
        raise NotFound(f"no record {receipt!r}", hint="reef traces list")
    return _row(reader, row)


def place(reader: Reader, seq: int) -> RecordPlace:
    """Of a record that is there."""
    path, cwd, commit, dirty, subagent, tags, note = reader.db.execute(
        "SELECT path, cwd, git_commit, git_dirty, subagent, tags, note FROM request WHERE seq = ?", (seq,)
    ).fetchone()
    changed = None if dirty is None else bool(dirty)
    return RecordPlace(path, cwd, commit, changed, subagent, json.loads(tags), note)


def by_seq(reader: Reader, seq: int) -> RecordRow:
    """A record that is there."""
    return _row(reader, reader.db.execute(f"{_ROW} WHERE r.seq = ?", (seq,)).fetchone())


def records(
    reader: Reader, limit: int = 50, *, session: str | None = None, scenario: str | None = None,
    before: str | None = None, after: str | None = None,
) -> tuple[list[RecordRow], str | None]:  # fmt: skip
    """Latest first; with ``after``, the ones that came later, oldest first. ``session`` is a session's id."""
    wanted = {
        "r.session = (SELECT id FROM session WHERE uid = ?)": session,
        "r.scenario = (SELECT id FROM name WHERE text = ?)": scenario,
    }
    rows, cursor = pages.rows(reader.db, _ROW, wanted, limit=limit, before=before, after=after)
    return [_row(reader, row) for row in rows], cursor


def last(reader: Reader, scenario: str | None = None) -> RecordRow | None:
    """The last session's last answer of its main line; None when that session has none yet."""
    session = last_session(reader.db, reader.names, scenario)
    if session is None:
        return None
    row = reader.db.execute(
        f"{_ROW} WHERE r.seq = (SELECT answer_seq FROM session WHERE id = ?)", (session,)
    ).fetchone()
    return None if row is None else _row(reader, row)


def last_of_run(reader: Reader, run: str, scenario: str | None = None) -> RecordRow | None:
    """The last answer of a run's main lines, as far as their sessions moved lately; None where it has none."""
    seqs = [
        seq
        for id in scopes(reader.db, reader.names, scenario)
        for (seq,) in reader.db.execute(
            f"""SELECT max(q.seq) FROM (SELECT answer_seq FROM session WHERE scenario = ?
            ORDER BY updated_seq DESC LIMIT {LATELY}) s JOIN request q ON q.seq = s.answer_seq
            WHERE json_extract(q.tags, '$.run') = ?""",
            (id, run),
        )
        if seq is not None
    ]
    return by_seq(reader, max(seqs)) if seqs else None


def last_under(reader: Reader, key: str, scenario: str) -> RecordRow | None:
    """The last answer of the session that an agent calls by that id; None where it has none."""
    row = reader.db.execute(
        """SELECT s.answer_seq FROM session_key k JOIN session s ON s.id = k.session
        WHERE k.scenario = ? AND k.key = ? AND s.answer_seq IS NOT NULL""",
        (reader.names.find(reader.db, scenario), key),
    ).fetchone()
    return None if row is None else by_seq(reader, row[0])


def knows(reader: Reader, key: str, scenario: str) -> bool:
    """Whether there is a record of the session that an agent calls by that id."""
    return (
        reader.db.execute(
            "SELECT 1 FROM session_key WHERE scenario = ? AND key = ?", (reader.names.find(reader.db, scenario), key)
        ).fetchone()
        is not None
    )


def _row(reader: Reader, row: Sequence[object]) -> RecordRow:
    db, names = reader.db, reader.names
    seq, receipt, session, scenario, kind, dialect, end, status, stream, started, duration, first_byte, *rest = row
    engine, asked, model, release, weights, agent, prompt, cached, completion, stop, error, preview, *tail = rest
    return RecordRow(
        seq, receipt, session, names.text(db, scenario), Kind(kind), Dialect(dialect), End(end), status, bool(stream),  # type: ignore[arg-type]
        started, duration, first_byte, names.text(db, engine), names.text(db, asked), names.optional_text(db, model),  # type: ignore[arg-type]
        names.text(db, release), names.optional_text(db, weights), names.optional_text(db, agent), prompt, cached,  # type: ignore[arg-type]
        completion, stop, error, preview, *tail,  # type: ignore[arg-type]
    )  # fmt: skip
