"""The words of learning as data: experience and its splits, instructions, tasks and their checks, jobs.

Neutral between recipes: the stream gives these, recipes read them, the store keeps them.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from daemon.core.records import Message


def canonical(prompt: str) -> str:
    """What makes two prompts the same to the gate: their words, whatever the case, blanks and punctuation."""
    folded = unicodedata.normalize("NFKC", prompt).casefold()
    return " ".join(re.findall(r"\w+", folded)) or folded.strip()


class Split(StrEnum):
    """Which sessions a recipe may learn from. Decided by the session's id alone, for good (METHODS R7)."""

    TRAIN = "train"
    SEARCH = "search"
    GATE = "gate"


@dataclass(frozen=True, slots=True)
class Feedback:
    """One report as a recipe reads it. ``edit`` is the answer as the person would have had it."""

    id: str
    score: float | None
    text: str | None
    edit: str | None
    #: It named no receipt of its own: said of the whole session.
    general: bool = False


@dataclass(frozen=True, slots=True)
class Experience:
    """One exchange that may be learned from: what was asked, what was answered, what was said about it.

    ``staleness`` counts releases between the one that served it and the head. ``logprobs`` [C] and ``completion_ids``
    [C] are there where the engine gave them (see `daemon.core.records.TokenSpan`). ``ended``: the model stopped by
    itself, not at a limit of tokens.
    """

    receipt: str
    session: str
    scenario: str
    split: Split
    seq: int
    release_id: str
    staleness: int
    weights: str | None
    prompt: tuple[Message, ...]
    answer: str
    feedback: tuple[Feedback, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    ended: bool = True

    @property
    def score(self) -> float | None:
        """The newest score given, None where nobody gave any."""
        scores = [said.score for said in self.feedback if said.score is not None]
        return scores[-1] if scores else None

    @property
    def edit(self) -> str | None:
        """The newest edit of the answer."""
        edits = [said.edit for said in self.feedback if said.edit]
        return edits[-1] if edits else None

    def asked(self) -> set[str]:
        """Everything a person asked in it, `canonical`."""
        return {canonical(said.text) for said in self.prompt if said.role == "user"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a person asked a recipe to do, in words (``POST /reef/train``). Used by one job."""

    id: str
    scenario: str
    text: str
    created_ns: int
    session: str | None = None
    release_id: str | None = None
    requires: tuple[str, ...] = ()
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one job learns from. Everything in it is claimed: no other job of that recipe gets it again.

    ``notes`` are reports with text; those of ``experience`` are among them.
    """

    experience: tuple[Experience, ...] = ()
    notes: tuple[Feedback, ...] = ()
    instructions: tuple[Instruction, ...] = ()


# -- tasks ------------------------------------------------------------------------------------------


class TaskSet(StrEnum):
    """``gate`` tasks decide, ``regression`` tasks must not be lost, ``search`` tasks may guide a recipe's search."""

    GATE = "gate"
    REGRESSION = "regression"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class Check:
    """When an answer passes. Exactly one of these is set.

    ``form``: a named format (`recipes.tasks.forms`), e.g. ``one_sentence``, ``json``, ``one_code_block``.
    ``expression``: a regular expression (Python's) that must be found; ``(?!…)`` forms forbid.
    ``command``: argv-like shell words run in an empty temporary directory with the answer on stdin and in
    ``answer.txt``; exit status 0 passes.
    """

    form: str | None = None
    expression: str | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """An evaluation item. ``critical`` regression tasks may never be lost. ``max_tokens`` bounds the answer."""

    id: str
    scenario: str
    set: TaskSet
    prompt: str
    check: Check
    critical: bool = False
    max_tokens: int = 256
    created_ns: int = 0


# -- jobs -------------------------------------------------------------------------------------------


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"  # ``outcome`` says with what
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class Outcome(StrEnum):
    """What a finished job came to."""

    NOTHING = "nothing"  # no batch, or the recipe proposed nothing
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    PENDING = "pending"  # accepted, waits for a person
    KEPT = "kept"  # accepted, waits for nobody
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a job is: ``done`` of ``total`` in ``step`` (select, grow, train, gate, publish); total 0: not known."""

    step: str
    done: int = 0
    total: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One run of a recipe. ``message`` is the last thing it said; ``error`` why it failed; ``attempts`` its starts."""

    id: str
    scenario: str
    recipe: str
    state: JobState
    created_ns: int
    config: Mapping[str, Any] = field(default_factory=dict)
    started_ns: int | None = None
    ended_ns: int | None = None
    attempts: int = 0
    progress: Progress | None = None
    message: str = ""
    outcome: Outcome | None = None
    release_id: str | None = None
    error: str | None = None
    records: int = 0
    instructions: tuple[str, ...] = ()
