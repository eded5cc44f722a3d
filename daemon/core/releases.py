"""Releases as data: what a scenario serves, where it came from, and how it was judged.

A release is a snapshot of the whole agent (DESIGN §6). Its manifest, ``release.json``, is what gets signed: whatever is
not in there is not vouched for. Frozen: a release is never changed, only followed by another one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

#: The release every scenario starts from: the agent and the model as they are, nothing evolved. It has no commit.
BASE_RELEASE: Final = "base"
#: What stands in a recipe's place where a person made the proposal.
PERSON: Final = "person"


class Verdict(StrEnum):
    """What the gate says of a candidate."""

    ACCEPT = "accept"
    REJECT = "reject"
    INCONCLUSIVE = "inconclusive"


class Policy(StrEnum):
    """What becomes of a candidate that the gate accepts."""

    AUTO = "auto"  # it is released
    REVIEW = "review"  # it waits for a person
    MANUAL = "manual"  # it is kept, and nobody is asked


class ReleaseKind(StrEnum):
    LEARNED = "learned"  # a recipe's candidate, accepted by the gate
    UNPROVEN = "unproven"  # released by a person without the gate's yes, or made by one
    ROLLBACK = "rollback"  # an earlier release's snapshot again


class ReleaseState(StrEnum):
    RELEASED = "released"  # in the chain
    PENDING = "pending"  # a candidate that waits for a person
    KEPT = "kept"  # an accepted candidate that waits for nobody: a person may still release it
    REJECTED = "rejected"  # a candidate that the gate or a person turned down


@dataclass(frozen=True, slots=True)
class Weights:
    """A LoRA adapter: ``sha256`` of its GGUF, ``base`` the sha256 of the model's GGUF it belongs to, sizes in bytes.

    ``peft_sha256`` is that of ``adapter_model.safetensors``, from which training goes on and vLLM serves.
    """

    sha256: str
    base: str
    bytes: int
    rank: int
    alpha: float
    peft_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class LoraFile:
    """A GGUF LoRA adapter on disk: ``sha256`` of its bytes, ``base`` the sha256 of the GGUF model it was trained on."""

    path: Path
    sha256: str
    base: str

    @property
    def weights(self) -> str:
        """The digest of the model with this adapter, as in `TokenSpan.weights`."""
        return f"{self.base}+{self.sha256}"


@dataclass(frozen=True, slots=True)
class Pair:
    """One task, answered by the incumbent and by the candidate. Answers are cut to what a person reads."""

    task: str
    prompt: str
    incumbent: bool
    candidate: bool
    incumbent_answer: str = ""
    candidate_answer: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """The regression set: ``held`` of ``tasks`` that the incumbent passed, ``lost`` of them by the candidate."""

    tasks: int
    held: int
    lost: int
    allowed: int
    passed: bool


@dataclass(frozen=True, slots=True)
class GateResult:
    """A judgement with its evidence. ``reason`` is one sentence for a person.

    ``wins`` and ``losses`` count discordant pairs from the candidate's side; ``e_value`` is METHODS R3's, ``p_value``
    exact McNemar's (R2), one-sided. ``planned`` pairs at most were to be run; ``pairs`` are those that were.
    """

    verdict: Verdict
    reason: str
    alpha: float
    wins: int
    losses: int
    ties: int
    e_value: float
    p_value: float
    planned: int
    incumbent_passed: int
    candidate_passed: int
    guard: Guard | None = None
    pairs: tuple[Pair, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Release:
    """One snapshot: a link of the chain, or a candidate that is not in it (``state``; ``number`` is 0 then).

    ``number`` counts from 1 along the chain and never goes back. ``files`` maps every path of the snapshot, below
    ``harness/`` and ``weights/`` or ``routing.json``, to its sha256. ``records``, ``reports`` and ``instructions`` are
    what it learned from. ``commit`` is the Git commit that holds it; the manifest itself leaves ``state``, ``commit``,
    ``head`` and ``note`` out.
    """

    id: str
    scenario: str
    number: int
    kind: ReleaseKind
    parent: str
    created_ns: int
    reason: str
    recipe: str | None = None
    job: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    weights: Weights | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    gate: GateResult | None = None
    #: The release whose snapshot this one repeats, for a rollback.
    restores: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    state: ReleaseState = ReleaseState.RELEASED
    commit: str | None = None
    head: bool = False
    #: Why it waits or was turned down, where that is not the gate's word.
    note: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a recipe proposes, relative to the incumbent ``parent``.

    ``harness`` maps paths below ``harness/`` to their new content, None deletes; what is not named stays. ``recipe`` is
    `PERSON` for a person's proposal, the only one that may hold more than text. ``lora`` is a GGUF LoRA adapter and
    ``peft`` the PEFT directory it came from, None to keep the incumbent's weights. ``routing`` maps model names that
    agents ask for to models (`daemon.core.harness.routing`), None to keep the incumbent's.
    """

    scenario: str
    parent: str
    reason: str
    recipe: str
    job: str
    config: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    harness: Mapping[str, str | None] = field(default_factory=dict)
    lora: str | None = None
    peft: str | None = None
    #: The sha256 of the GGUF model that ``lora`` belongs to.
    base: str | None = None
    routing: Mapping[str, str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
