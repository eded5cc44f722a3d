"""Edits, accepted answers and notes become a LoRA adapter: ``recipe: sft``.

Answers that a person wrote or accepted are learned as they are. A note alone ("Answer in one short sentence.") is
learned by context distillation: the model answers old questions again with the note before its eyes, and the answers
that obey become what it learns to say without it. So a note can only teach what the model can do when told; that is
measured first, and said. Nothing here judges the outcome: the gate does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from daemon.core.learning import Batch, Experience, Feedback, Instruction
from daemon.core.records import Message, Text
from recipes.base import Context, Proposal, Recipe, Signal, Stream, Target
from recipes.lora.convert import convert
from recipes.sft.conversations import example, plain
from recipes.sft.teacher import Teacher, Teaching

#: General questions whose own answers are learned beside edits, against forgetting (METHODS C6).
_REPLAY: Final = (
    "Name three fruits.",
    "How do plants make food?",
    "Write a sentence about winter.",
    "What is the Moon?",
    "Give me a tip for cooking rice.",
    "Who was Albert Einstein?",
    "Write a short greeting for a friend.",
    "What is a haiku?",
    "Suggest a name for a small boat.",
    "What can I do on a rainy day?",
)
_GOOD: Final = 0.5


@dataclass(frozen=True, slots=True)
class SFTConfig:
    """Measured with a model of 135 million weights on two cores; the learning rates want no more than these steps."""

    #: Edited and accepted answers that start a job; a note starts one by itself.
    batch_size: int = 8
    #: Releases since the one that answered.
    max_staleness: int = 18
    #: Old questions that a note is taught on: so many at most, and it waits for so many.
    most_questions: int = 36
    least_questions: int = 12
    #: Answers to each question under the note, and how long they may be.
    samples: int = 2
    temperature: float = 0.3  # at 0.7 as many obey, but what they say is worse
    answer_tokens: int = 96
    #: Share of those answers that must pass the tasks' check for a note to be enough.
    obedience: float = 0.5
    #: Teach a note when no tasks say what an answer that obeys it is.
    unchecked: bool = False
    steps: int = 14
    edit_learning_rate: float = 4e-4
    note_learning_rate: float = 3e-4
    #: Replayed general answers for each edit; none beside a note, which is meant for all answers.
    replay: float = 0.33
    rank: int = 16
    longest: int = 2048
    seed: int = 0


class SFTRecipe(Recipe):
    name: ClassVar[str] = "sft"
    summary: ClassVar[str] = "your edits, accepted answers and notes become weights"
    signals: ClassVar[tuple[Signal, ...]] = (Signal.EDIT, Signal.MARK, Signal.NOTE, Signal.INSTRUCTION)
    target: ClassVar[Target] = Target.WEIGHTS
    Config: ClassVar[type[SFTConfig]] = SFTConfig
    config: SFTConfig

    def select(self, stream: Stream) -> Batch | None:
        """One note at a time, the oldest, with questions to teach it on; or enough answers to learn as they are."""
        fresh = [one for one in stream.experience() if one.staleness <= self.config.max_staleness and plain(one)]
        answers = [one for one in fresh if wanted(one) is not None]
        notes, instructions = _one_wish(stream)
        if not notes and not instructions:
            return Batch(tuple(answers)) if len(answers) >= self.config.batch_size else None
        others = [one for one in fresh if wanted(one) is None][-self.config.most_questions :]
        if len(others) + len(answers) < self.config.least_questions:
            return None
        return Batch((*answers, *others), notes, instructions)

    def grow(self, batch: Batch, context: Context) -> Proposal | None:
        answers = [one for one in batch.experience if wanted(one) is not None]
        examples = [example(one.prompt, wanted(one) or "") for one in answers]
        rate, reason = self.config.edit_learning_rate, f"Learned from {len(answers)} of your answers."
        teacher = Teacher(context, self.config.seed)
        if note := _wish(batch):
            taught = teacher.teach(note, batch.experience, self._teaching())
            if taught is None:
                return None
            examples += taught
            rate, reason = self.config.note_learning_rate, f'Learned from your note "{note}".'
        else:
            count = min(len(_REPLAY), int(len(answers) * self.config.replay))
            examples += teacher.replay([(Message("user", (Text(text),)),) for text in _REPLAY[:count]])
        return self._trained(context, examples, rate, reason)

    def _teaching(self) -> Teaching:
        config = self.config
        return Teaching(
            samples=config.samples,
            temperature=config.temperature,
            tokens=config.answer_tokens,
            obedience=config.obedience,
            unchecked=config.unchecked,
        )

    def _trained(self, context: Context, examples: Sequence[dict[str, Any]], rate: float, reason: str) -> Proposal:
        gguf, sha256 = context.base_model()
        spec = {
            "gguf": str(gguf),
            "sha256": sha256,
            "directory": str(context.directory / "training"),
            "examples": list(examples),
            "steps": self.config.steps,
            "learning_rate": rate,
            "rank": self.config.rank,
            "alpha": 2 * self.config.rank,
            "seed": self.config.seed,
            "longest": self.config.longest,
        }
        result = context.train("recipes.lora.train", spec)
        peft, lora = Path(str(result["peft"])), context.directory / "adapter.gguf"
        convert(peft, gguf, lora)
        context.say(
            f"trained on {result['examples']} answers in {result['seconds']} s: "
            f"loss {result['loss_first']} to {result['loss_last']}"
        )
        return Proposal(reason, lora=lora, peft=peft)


def wanted(experience: Experience) -> str | None:
    """The answer as the person would have it: their edit, else the model's own if they marked it good."""
    if experience.edit:
        return experience.edit
    accepted = experience.score is not None and experience.score > _GOOD
    return experience.answer if accepted else None


def _one_wish(stream: Stream) -> tuple[tuple[Feedback, ...], tuple[Instruction, ...]]:
    """The oldest note (an instruction, where there is none) and all that say the same; later ones get their own job."""
    notes = [one for one in stream.notes() if one.score is None and not one.edit and one.text]
    instructions = stream.instructions()
    texts = [one.text or "" for one in notes] + [one.text for one in instructions]
    same = _folded(texts[0] if texts else "")
    return (
        tuple(one for one in notes if _folded(one.text or "") == same),
        tuple(one for one in instructions if _folded(one.text) == same),
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _wish(batch: Batch) -> str:
    texts = [one.text or "" for one in batch.notes] + [one.text for one in batch.instructions]
    return " ".join(texts[0].split()) if texts else ""
