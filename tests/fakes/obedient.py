"""A model that is a plain function, behind a job's `Context`: what a gate or a recipe sees of a job, without one."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.core.errors import NotFound
from daemon.core.learning import Check, Task, TaskSet
from daemon.core.records import Message
from daemon.core.releases import Release
from recipes.base import Answer, Which
from recipes.tasks import checks
from tests.fakes.provider import Turn

#: From the rules that are told (the system message, empty without one), the prompt and the weights to an answer.
Model = Callable[[str, str, Which], str]


def obedient(rules: str, prompt: str, which: Which) -> str:
    """Follows the rules it knows; the weights of a candidate have learned the sentence by heart."""
    if "capital" in rules.lower():
        return f"{prompt.upper()}!"
    if "one short sentence" in rules.lower() or which is Which.CANDIDATE:
        return f"It is about {prompt}."
    return f"Well. Let me tell you about {prompt}. There is much to say."


def follows_rules(asked: Any) -> Turn:
    """`Provider.reply` of a provider whose model obeys: a system message anywhere in the request counts."""
    said = asked["messages"]
    system = [asked.get("system") or "", *(message["content"] for message in said if message["role"] == "system")]
    return Turn(obedient(json.dumps(system), str(said[-1]["content"]), Which.HEAD))


@dataclass
class FakeJob:
    """A `Context`. ``asked`` are the batches as (which, prompts, most tokens); ``dies_after`` answers it breaks."""

    model: Model = obedient
    scenario: str = "default"
    incumbent: Release | None = None
    directory: Path = Path("/nonexistent")
    files: Mapping[str, str] = field(default_factory=dict)
    given: Sequence[Task] = ()
    dies_after: int | None = None
    asked: list[tuple[Which, list[str], int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    steps: list[tuple[str, int, int, str]] = field(default_factory=list)
    answered: int = 0

    def harness(self) -> Mapping[str, str]:
        return self.files

    def tasks(self, set: TaskSet) -> list[Task]:
        return [task for task in self.given if task.set is set]

    def base_model(self) -> tuple[Path, str]:
        raise NotFound("a provider's model has no file here")

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        *,
        which: Which = Which.BASE,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> list[Answer]:
        assert temperature == 0.0
        self.asked.append((which, [conversation[-1].text for conversation in conversations], max_tokens))
        return [self._answer(conversation, which, max_tokens) for conversation in conversations]

    def _answer(self, conversation: Sequence[Message], which: Which, max_tokens: int) -> Answer:
        if self.dies_after is not None and self.answered >= self.dies_after:
            raise ConnectionError("the engine died")
        self.answered += 1
        rules = "".join(message.text for message in conversation if message.role == "system")
        words = self.model(rules, conversation[-1].text, which).split(" ")
        return Answer(" ".join(words[:max_tokens]), len(words) <= max_tokens, min(len(words), max_tokens), which.value)

    def passes(self, check: Check, answer: Answer, prompt: str = "") -> bool:
        return checks.passes(check, answer, prompt)

    def progress(self, step: str, done: int = 0, total: int = 0, note: str = "") -> None:
        self.steps.append((step, done, total, note))

    def say(self, text: str) -> None:
        self.said.append(text)

    def train(self, module: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError


def task(number: int, set: TaskSet = TaskSet.GATE, *, form: str = "one_sentence", critical: bool = False) -> Task:
    """A task with an id and a prompt of its own."""
    prefix = "" if set is TaskSet.GATE else f"{set} "
    return Task(
        f"tsk_{set}_{number}", "default", set, f"{prefix}thing {number}", Check(form=form), critical, max_tokens=64
    )
