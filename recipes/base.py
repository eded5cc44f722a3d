"""What a recipe is: how the stream of experience becomes a candidate (DESIGN §7).

A recipe says what it learns from and what it changes, picks a batch, and grows a candidate from it. It never judges
its own work: the gate does. It runs in a job's process, so it may take its time and crash.
It is the person's own code with the person's rights, not confined: run only recipes you would run yourself.
Anyone's class in anyone's file will do: ``recipe: my.module:MyRecipe``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

from daemon.core.learning import Batch, Check, Experience, Feedback, Instruction, Split, Task, TaskSet
from daemon.core.records import Message
from daemon.core.releases import Release


class Signal(StrEnum):
    """What a recipe learns from."""

    NOTE = "note"  # a person's words about an answer
    INSTRUCTION = "instruction"  # a person's words to the recipe
    MARK = "mark"  # a score
    EDIT = "edit"  # an answer as the person would have had it
    TRAFFIC = "traffic"  # exchanges alone
    CHECK = "check"  # tasks' checks


class Acquisition(StrEnum):
    REACTIVE = "reactive"  # it waits for experience
    PROACTIVE = "proactive"  # it makes its own


class Target(StrEnum):
    HARNESS = "harness"
    WEIGHTS = "weights"
    BOTH = "both"


class Stream(Protocol):
    """A scenario's experience, as much of it as this recipe may see: eligible, deduplicated, not yet consumed by it.

    Never holds anything of the gate's: sessions of the ``gate`` split and prompts of tasks are left out.
    """

    def experience(
        self, *, split: Split = Split.TRAIN, signals: Sequence[Signal] = (), limit: int = 1000
    ) -> list[Experience]:
        """Oldest first; with ``signals``, only exchanges that carry one of them."""
        ...

    def notes(self) -> list[Feedback]:
        """Reports with text that no job of this recipe has used, oldest first."""
        ...

    def instructions(self) -> list[Instruction]:
        """Instructions for this recipe that no job has used, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """``ended``: the model stopped by itself, within ``max_tokens``. ``weights`` as in `TokenSpan.weights`."""

    text: str
    ended: bool
    tokens: int
    weights: str | None


class Which(StrEnum):
    """The weights that answer."""

    HEAD = "head"  # what the scenario serves
    BASE = "base"  # the model without any LoRA adapter
    CANDIDATE = "candidate"  # the LoRA adapter in `Context.candidate_lora`


class Context(Protocol):
    """What a job gives its recipe. ``directory`` survives kill -9: leave there what is dear to make again."""

    scenario: str
    incumbent: Release | None
    directory: Path

    def base_model(self) -> tuple[Path, str]:
        """The GGUF that the embedded engine serves, and its sha256. Raises ReefError where there is none to train."""
        ...

    def harness(self) -> Mapping[str, str]:
        """The incumbent's files below ``harness/``, by path."""
        ...

    def tasks(self, set: TaskSet) -> list[Task]:
        """Tasks of the scenario. Those that decide (gate, regression) come without their prompts: nothing to learn."""
        ...

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        *,
        which: Which = Which.BASE,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> list[Answer]:
        """One answer to each conversation, from the engine that serves, behind people's requests."""
        ...

    def passes(self, check: Check, answer: Answer, prompt: str = "") -> bool:
        """Whether an answer passes; for commands this runs one."""
        ...

    def progress(self, step: str, done: int = 0, total: int = 0, note: str = "") -> None: ...

    def say(self, text: str) -> None:
        """One line for the person who watches."""
        ...

    def train(self, module: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run ``python -m module`` in the training environment (made if need be) at nice 19, with ``spec`` as JSON on
        stdin; its JSON lines are progress, the last one the result. Raises ReefError with its words when it fails.

        A progress line's ``values``, numbers by name (``{"loss": 1.2}``), are what a person sees as curves by ``done``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """What `Recipe.grow` returns: see `daemon.core.releases.Candidate` for ``harness``, ``lora`` and ``peft``.

    ``harness`` may hold the text kinds of `daemon.core.harness`; None removes a file.
    ``reason`` is one sentence that a person reads in the notice.
    """

    reason: str
    harness: Mapping[str, str | None] = field(default_factory=dict)
    lora: Path | None = None
    peft: Path | None = None


class Recipe:
    """Subclass, set the class attributes, and give `select` and `grow`. ``Config`` is a frozen dataclass of settings,
    each with a default; keys of ``reef:`` in the configuration that it does not have are refused by name.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    signals: ClassVar[tuple[Signal, ...]]
    acquisition: ClassVar[Acquisition] = Acquisition.REACTIVE
    target: ClassVar[Target]
    Config: ClassVar[type[Any]]

    def __init__(self, config: Any) -> None:
        self.config = config

    def select(self, stream: Stream) -> Batch | None:
        """What to learn from now; None when that is not enough yet. Claimed for this job before `grow` sees it."""
        raise NotImplementedError

    def grow(self, batch: Batch, context: Context) -> Proposal | None:
        """A candidate from a batch, or None with the reason said (`Context.say`). Runs again after a kill -9, with the
        same batch and the same ``context.directory``.
        """
        raise NotImplementedError
