"""Edits, accepted answers and notes become a LoRA adapter: ``recipe: sft``.

Answers that a person wrote or accepted are learned as they are. A note alone ("Answer in one short sentence.") is
learned by context distillation: the model answers old questions again with the note before its eyes, and the answers
that obey become what it learns to say without it. So a note can only teach what the model can do when told; that is
measured first, and said. Nothing here judges the outcome: the gate does.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from daemon.core.learning import Batch, Experience, Feedback, Instruction
from daemon.core.records import Message, Text
from recipes.base import Context, Proposal, Recipe, Signal, Stream, Target
from recipes.lora.convert import convert
from recipes.sft.config import SFTConfig
from recipes.sft.conversations import example, plain
from recipes.sft.teacher import Teacher

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
_CHARACTERS: Final = 4


class SFTRecipe(Recipe):
    name: ClassVar[str] = "sft"
    summary: ClassVar[str] = "Your edits, accepted answers and notes become weights."
    signals: ClassVar[tuple[Signal, ...]] = (Signal.EDIT, Signal.MARK, Signal.NOTE, Signal.INSTRUCTION)
    target: ClassVar[Target] = Target.WEIGHTS
    Config: ClassVar[type[SFTConfig]] = SFTConfig
    config: SFTConfig

    def select(self, stream: Stream) -> Batch | None:
        """One note at a time, the oldest, with questions to teach it on; or enough answers to learn as they are."""
        fresh = [one for one in stream.experience() if self._usable(one)]
        notes, instructions = _one_wish(stream)
        questions = [one for one in fresh if not one.edit][-self.config.most_questions :]
        if (notes or instructions) and len(questions) >= self.config.least_questions:
            return Batch((*(one for one in fresh if one.edit), *questions), notes, instructions)
        answers = tuple(one for one in fresh if wanted(one) is not None)
        return Batch(answers) if len(answers) >= self.config.least_answers else None

    def _usable(self, one: Experience) -> bool:
        """Fresh enough, text alone, and most likely short enough to train on."""
        characters = sum(len(message.text) for message in one.prompt) + len(wanted(one) or "")
        short = characters <= _CHARACTERS * self.config.longest
        return short and one.staleness <= self.config.max_staleness and plain(one)

    def grow(self, batch: Batch, context: Context) -> Proposal | None:
        model = context.base_model()  # first: without one to train, nothing need be asked
        note, teacher = _wish(batch), Teacher(context, self.config)
        # What was accepted before the note was answered without it: only edits are a person's own words.
        answers = [one for one in batch.experience if (one.edit if note else wanted(one))]
        examples = [example(one.prompt, wanted(one) or "") for one in answers]
        rate, reason = self.config.edit_learning_rate, f"Learned from {len(answers)} answers as you would have them."
        if note:
            taught = teacher.teach(note, batch.experience)
            if taught is None:
                return None
            examples += taught
            rate, reason = self.config.note_learning_rate, f'Learned from your note "{note}".'
        else:
            count = min(len(_REPLAY), int(len(answers) * self.config.replay))
            examples += teacher.replay([(Message("user", (Text(text),)),) for text in _REPLAY[:count]])
        lora, peft = self._trained(context, model, examples, rate)
        return Proposal(reason, lora=lora, peft=peft)

    def _trained(
        self, context: Context, model: tuple[Path, str], examples: Sequence[dict[str, Any]], rate: float
    ) -> tuple[Path, Path]:
        """The adapter in GGUF and in PEFT's format."""
        gguf, sha256 = model
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
        return lora, peft


def wanted(experience: Experience) -> str | None:
    """The answer as the person would have it: their edit, else the model's own if they marked it good.

    One that was cut off at a limit of tokens has no end to learn: the model would learn to stop in mid-sentence.
    """
    if experience.edit:
        return experience.edit
    accepted = experience.ended and experience.score is not None and experience.score > _GOOD
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
