"""What is read back from the store: one frozen row for each line of a list. Nothing here is ever written to again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from daemon.core.records import Dialect, End, Kind


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One line of the session list. ``turns`` counts main records that ended ok; retries count once."""

    id: str
    scenario: str
    agent: str | None
    title: str
    created_ns: int
    updated_ns: int
    turns: int
    records: int
    prompt_tokens: int
    completion_tokens: int
    parent: str | None
    cwd: str | None
    score: float | None
    reports: int
    #: Its place in the list's order: the last record's ``seq``.
    seq: int = 0


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One line of the record list."""

    seq: int
    receipt: str
    session: str
    scenario: str
    kind: Kind
    dialect: Dialect
    end: End
    status: int
    stream: bool
    started_ns: int
    duration_us: int
    first_byte_us: int | None
    engine: str
    model_asked: str
    model: str | None
    release_id: str
    weights: str | None
    agent: str | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    stop_reason: str | None
    error: str | None
    preview: str
    messages: int
    redacted: int
    parent: str | None


@dataclass(frozen=True, slots=True)
class ReportRow:
    """Feedback as stored. ``undone_ns`` is set when a person took it back; the row stays."""

    id: str
    scenario: str
    score: float | None
    feedback: str | None
    references: tuple[str, ...]
    metadata: Mapping[str, Any]
    created_ns: int
    undone_ns: int | None


@dataclass(frozen=True, slots=True)
class NewReport:
    """Feedback on its way in. ``id`` is the caller's ``agent_record_id`` or a new one."""

    id: str
    scenario: str
    score: float | None = None
    feedback: str | None = None
    references: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollupRow:
    """Sums over the records that began in one hour or day from ``start_ns`` on. Names are None where not split by
    them; ``turns`` counts as a session's do."""

    start_ns: int
    scenario: str | None
    agent: str | None
    model: str | None
    records: int
    turns: int
    failed: int
    retries: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    duration_us: int


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry of the audit log; ``hash`` (hex) covers it and the one before."""

    seq: int
    at_ns: int
    event: str
    facts: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class Purge:
    """What is to be forgotten: records for which all that is given holds. ``before_ns``: of sessions whose last record
    is older; ``repository``: of sessions in that folder or below.
    """

    sessions: tuple[str, ...] = ()
    receipts: tuple[str, ...] = ()
    before_ns: int | None = None
    scenario: str | None = None
    repository: str | None = None


@dataclass(frozen=True, slots=True)
class Purged:
    """What went, or would. ``kept_messages`` are held by other records, too. ``releases`` and ``jobs`` learned from it:
    releases stay as they are. ``compacted``: the database file was written anew.
    """

    records: int = 0
    sessions: int = 0
    reports: int = 0
    messages: int = 0
    kept_messages: int = 0
    releases: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    compacted: bool = False
