"""What is read back from the store: one frozen row for each line of a list. Nothing here is ever written to again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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
    #: Its place in the list that it came in: its last record's ``seq``, or as that list is sorted or filtered.
    seq: int = 0
    #: US dollars, of the records of which it is known; None: of none.
    cost_usd: float | None = None
    #: Of all records together.
    duration_us: int = 0
    #: Records by their kind.
    subagents: int = 0
    side: int = 0
    retries: int = 0
    #: How the main line's last record ended, and what served it; None where there is none.
    status: End | None = None
    release_id: str | None = None
    #: A person called it golden.
    pinned: bool = False


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
    #: How it hangs on its parent: start, next, fork, rewrite, compaction, spawn.
    edge: str
    #: US dollars; None: unknown.
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record came from: its route, the folder and commit that its agent worked on, what else it was told.

    ``dirty``: whether its tree differed from that commit, None where nobody knows. ``note`` says what could not be read
    of it.
    """

    path: str
    cwd: str | None
    commit: str | None
    dirty: bool | None
    subagent: str | None
    tags: Mapping[str, str]
    note: str | None


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
    them; ``turns`` and ``cost_usd`` count as a session's do."""

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
    cost_usd: float | None = None


class SignalName(StrEnum):
    """What happened after an answer."""

    TURN = "turn"  # the person's next words
    TOOL = "tool"  # a tool that it called returned; the value is its exit status
    REFUSED = "refused"  # the person did not allow its tool call
    STOPPED = "stopped"  # the person stopped it, or the agent left
    RETRIED = "retried"  # it failed, and the agent asked again
    LEFT = "left"  # the person went back before it and went on otherwise


@dataclass(frozen=True, slots=True)
class SignalRow:
    """``at`` is the receipt of the record that showed it."""

    name: SignalName
    value: int | None
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was searched for; ``snippet`` is the line around the words, None where none were asked for;
    ``score`` the last rating that stands on it."""

    record: RecordRow
    snippet: str | None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """``next`` is the cursor of the next page, also where this one is short. ``unindexed`` records cannot be found by
    their words yet."""

    items: tuple[Hit, ...]
    next: str | None
    unindexed: int
