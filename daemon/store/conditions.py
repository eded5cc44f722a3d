"""A query as SQL: the index that is walked for it, and what is checked of the records there.

Pure. A query's values only ever become parameters.
"""

from dataclasses import dataclass
from typing import Final

from daemon.core import fields
from daemon.store import unspaced
from daemon.store.query import Field, Query

#: The sessions whose id begins so; lists show beginnings. More of them are no name.
NAMED: Final = "(SELECT id FROM session WHERE uid >= ? AND uid < ? LIMIT 50)"
#: Letters of a whole id.
WHOLE: Final = 30
#: The release of that id, and those whose id begins so.
_RELEASES: Final = "r.release_id IN (SELECT id FROM name WHERE text = ? OR (text >= ? AND text < ?))"
#: Where a field can be walked: one value of it, newest first.
_WALKS: Final = {
    "session": "SELECT seq FROM record WHERE session = (SELECT id FROM session WHERE uid = ?)",
    "kind": "SELECT seq FROM record WHERE kind <> 'main' AND kind = ?",
    "signal": "SELECT DISTINCT seq FROM signal WHERE name = ?",
    "model": "SELECT seq FROM record WHERE model_asked = (SELECT id FROM name WHERE text = ?)",
    "agent": "SELECT seq FROM record WHERE agent = (SELECT id FROM name WHERE text = ?)",
    "scenario": "SELECT seq FROM record WHERE scenario = (SELECT id FROM name WHERE text = ?)",
}
_PINNED_WALK: Final = "SELECT seq FROM record WHERE session IN (SELECT id FROM session WHERE pinned_ns IS NOT NULL)"
#: A report that was not taken back.
_STANDS: Final = "EXISTS (SELECT 1 FROM report p WHERE p.id = f.report AND p.undone_ns IS NULL)"
_NOTED: Final = """EXISTS (SELECT 1 FROM report p WHERE p.id = f.report AND p.undone_ns IS NULL
    AND p.feedback IS NOT NULL)"""
_HAS_WALKS: Final = {
    "feedback": f"SELECT DISTINCT seq FROM reference f WHERE {_STANDS}",
    "note": f"SELECT DISTINCT seq FROM reference f WHERE {_NOTED}",
    "error": """SELECT seq FROM record INDEXED BY record_failed WHERE "end" <> 'ok'""",
}
#: Which index is walked first.
_RANKS: Final = (
    "session", "is", "has:note", "score", "has:feedback", "status", "has:error", "kind", "signal", "model", "agent",
    "scenario",
)  # fmt: skip
_CHECKS: Final = {
    "session": f"r.session IN {NAMED}",
    "signal": "EXISTS (SELECT 1 FROM signal g WHERE g.name = ? AND g.seq = r.seq)",
    "model": "r.model_asked IN (SELECT id FROM name WHERE text = ?)",
    "agent": "coalesce(r.agent, 0) IN (SELECT id FROM name WHERE text = ?)",
    "scenario": "r.scenario IN (SELECT id FROM name WHERE text = ?)",
    "kind": "r.kind = ?",
}
_HAS: Final = {
    "feedback": f"EXISTS (SELECT 1 FROM reference f WHERE f.seq = r.seq AND {_STANDS})",
    "note": f"EXISTS (SELECT 1 FROM reference f WHERE f.seq = r.seq AND {_NOTED})",
    "signal": "EXISTS (SELECT 1 FROM signal g WHERE g.seq = r.seq)",
    "error": """r."end" <> 'ok'""",
    "tools": "r.tools > 0",
    "secret": "r.redacted > 0",
}
#: What a number is compared with.
_NUMBERS: Final = {
    "score": """EXISTS (SELECT 1 FROM reference f JOIN report p ON p.id = f.report
        WHERE f.seq = r.seq AND p.undone_ns IS NULL AND p.score {} ?)""",
    "tokens": "r.prompt_tokens + r.completion_tokens {} ?",
    "cost": "r.cost_usd {} ?",
    "latency": "r.duration_us {} ?",
}


@dataclass(frozen=True, slots=True)
class Walk:
    """The index to walk, with what it answers of the query already."""

    sql: str
    values: tuple[object, ...]
    done: Field | None = None
    by_words: bool = False


def walk(query: Query) -> Walk:
    if query.words:
        return Walk("SELECT rowid FROM words WHERE words MATCH ?", (_match(query),), by_words=True)
    ranked = [(rank, field) for field in query.fields if (rank := _rank(field)) is not None]
    if not ranked:
        return Walk("SELECT seq FROM record WHERE 1", ())
    _, field = min(ranked, key=lambda item: item[0])
    if field.name in _WALKS:
        return Walk(_WALKS[field.name], (field.value,), field)
    if field.name == "is":
        return Walk(_PINNED_WALK, (), field)
    if field.name == "has":
        return Walk(_HAS_WALKS[field.value], (), field)
    if field.name == "score":
        return Walk(_HAS_WALKS["feedback"], ())
    return Walk(_HAS_WALKS["error"], ())  # the check tells how they failed


def _rank(field: Field) -> int | None:
    """How much walking its index narrows a search, the most first; None where it has none."""
    if field.without or field in (Field("kind", "main"), Field("status", "ok")):
        return None
    if field.name == "session" and len(field.value) < WHOLE:
        return None
    key = f"has:{field.value}" if field.name == "has" else field.name
    return _RANKS.index(key) if key in _RANKS else None


def _match(query: Query) -> str:
    """The words for FTS5."""
    wanted = [unspaced.sought(word) for word in dict.fromkeys(query.words)]
    left_out = "".join(f" NOT {unspaced.sought(word)}" for word in query.without)
    return f"({' AND '.join(wanted)}){left_out}"


def checks(query: Query, walked: Walk) -> tuple[str, list[object]]:
    """What is left of the query once its walk is known, as a condition on ``record r``."""
    parts: list[str] = []
    values: list[object] = []
    for field in query.fields:
        if field == walked.done:
            continue
        condition, value = _condition(field)
        parts.append(f"NOT ({condition})" if field.without else condition)
        values += value
    for name, bound in ((">=", query.since_ns), ("<=", query.until_ns)):
        if bound is not None:
            parts.append(f"r.started_ns {name} ?")
            values.append(bound)
    for word in query.without if not walked.by_words else ():
        parts.append("NOT EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND rowid = r.seq)")
        values.append(unspaced.sought(word))
    return " AND ".join(parts), values


def _condition(field: Field) -> tuple[str, list[object]]:
    if field.name == "is":
        return "r.session IN (SELECT id FROM session WHERE pinned_ns IS NOT NULL)", []
    if field.name == "has":
        return _HAS[field.value], []
    if field.name in _NUMBERS:
        compared = fields.bound(field.name, field.value)
        return _NUMBERS[field.name].format(compared.operator), [compared.number]
    if field.name == "release":
        return _RELEASES, _release(field.value)
    if field.name == "session":
        return _CHECKS["session"], [field.value, f"{field.value}~"]
    if field.name != "status":
        return _CHECKS[field.name], [field.value]
    if field.value == "failed":
        return _HAS["error"], []
    return ("r.status = ?", [int(field.value)]) if field.value.isdigit() else ('r."end" = ?', [field.value])


def _release(value: str) -> list[object]:
    """``12`` and ``r12`` are that number's; what has a dash is the beginning of an id, what has none a whole one."""
    number = f"r{value}" if value.isdigit() else value
    beginning = value if "-" in value else f"{number}-"
    return [value, beginning, f"{beginning}~"]
