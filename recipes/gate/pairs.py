"""Running tasks on both sides, a few at a time, and handing the pairs out one by one in a fixed order.

The order comes from a hash of what the task is, so neither a recipe nor a person can put the easy ones first. Pairs
that a job had before it was killed are not run again. A batch is asked for together because a provider answers eight
in the time of one (the engine inside takes them one after the other); who asks for the next pair still sees them one at
a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from daemon.core.errors import Conflict
from daemon.core.learning import Task, canonical
from daemon.core.releases import Pair
from recipes.base import Answer, Context, Which
from recipes.gate.variant import Variant

#: Tasks whose answers are asked for together, a side at a time.
_AT_ONCE: Final = 8
#: Characters of an answer that a person is shown.
_SHOWN: Final = 400


def ordered(tasks: Sequence[Task]) -> list[Task]:
    """By a hash of prompt and check; the same for every candidate."""
    return sorted(tasks, key=lambda task: (sha256(f"{task.prompt}\0{task.check}".encode()).digest(), task.id))


def independent(tasks: Sequence[Task]) -> list[Task]:
    """In that order, one a prompt: several checks of one answer are one piece of evidence, however often they agree."""
    found: dict[str, Task] = {}
    for task in ordered(tasks):
        found.setdefault(canonical(task.prompt), task)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Pairing:
    """Both sides, with what is known already."""

    context: Context
    incumbent: Variant
    candidate: Variant
    done: dict[str, Pair]
    on_pair: Callable[[Pair], None]
    #: The digest that answered first for each kind of weights: what answers may not change under a comparison.
    seen: dict[Which, str | None] = field(default_factory=dict)

    def run(self, tasks: Sequence[Task]) -> Iterator[Pair]:
        """A pair for each task in order. ``on_pair`` hears those that were run now, before they are handed out."""
        for number, start in enumerate(range(0, len(tasks), _AT_ONCE)):
            batch = tasks[start : start + _AT_ONCE]
            answers: dict[str, tuple[Answer, Answer]] = {}
            for task in batch:
                pair = self.done.get(task.id)
                if pair is None:  # only now: what is known may have decided already
                    answers = answers or self._both([task for task in batch if task.id not in self.done], number)
                    pair = self._pair(task, *answers[task.id])
                    self.on_pair(pair)
                yield pair

    def _both(self, tasks: Sequence[Task], number: int) -> dict[str, tuple[Answer, Answer]]:
        """Incumbent's and candidate's. Sides alternate, so that neither always runs on a cold or a busy machine."""
        if number % 2:
            after, before = self._answers(self.candidate, tasks), self._answers(self.incumbent, tasks)
        else:
            before, after = self._answers(self.incumbent, tasks), self._answers(self.candidate, tasks)
        return {task.id: (before[task.id], after[task.id]) for task in tasks}

    def _answers(self, side: Variant, tasks: Sequence[Task]) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for most in sorted({task.max_tokens for task in tasks}):
            asked = [task for task in tasks if task.max_tokens == most]
            said = self.context.answer(
                [side.conversation(task) for task in asked], which=side.which, max_tokens=most, temperature=0.0, seed=0
            )
            for answer in said:
                if (first := self.seen.setdefault(side.which, answer.weights)) != answer.weights:
                    raise Conflict(
                        f"what serves changed while the gate compared: {first}, then {answer.weights}",
                        hint="another run of the recipe compares with what serves now",
                    )
            found.update({task.id: answer for task, answer in zip(asked, said, strict=True)})
        return found

    def _pair(self, task: Task, before: Answer, after: Answer) -> Pair:
        return Pair(
            task=task.id,
            prompt=task.prompt[:_SHOWN],
            incumbent=self.context.passes(task.check, before, task.prompt),
            candidate=self.context.passes(task.check, after, task.prompt),
            incumbent_answer=before.text[:_SHOWN],
            candidate_answer=after.text[:_SHOWN],
        )
