"""One side of a comparison: a harness and the weights that answer with it, and how its rules are told.

Skills and prompts are read by an agent when it likes: the gate, which asks the model alone, cannot tell what they do.
Rules go into a system message, as agents send theirs. Ids and counters are never told: nothing of the bookkeeping may
move an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from daemon.core import harness, playbook
from daemon.core.learning import Task
from daemon.core.records import Message, Text
from recipes.base import Which

_MEMORY: Final = "memory/"


@dataclass(frozen=True, slots=True)
class Variant:
    """``files`` are those below ``harness/``, by path."""

    files: Mapping[str, str] = field(default_factory=dict)
    which: Which = Which.HEAD

    def told(self) -> str:
        """What an agent tells the model with every request, as `adapters.rendering` puts it together; empty without
        any. Raises ValueError for a playbook that is none.
        """
        facts = [self.files[path] for path in sorted(self.files) if path.startswith(_MEMORY)]
        rules = playbook.told(playbook.parse(self.files.get(playbook.PATH, "")))
        parts = (self.files.get(harness.RULES, ""), *facts, rules)
        return "\n\n".join(part.strip() for part in parts if part.strip())

    def conversation(self, task: Task) -> tuple[Message, ...]:
        """What the model is asked for a task."""
        rules = self.told()
        system = (Message("system", (Text(rules),)),) if rules else ()
        return (*system, Message("user", (Text(task.prompt),)))
