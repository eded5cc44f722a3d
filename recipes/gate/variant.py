"""One side of a comparison: a harness and the weights that answer with it, and how its rules are told.

Rules go into a system message, as agents send theirs. Ids and counters are never told: nothing of the bookkeeping may
move an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from daemon.core import playbook
from daemon.core.learning import Task
from daemon.core.records import Message, Text
from recipes.base import Which


@dataclass(frozen=True, slots=True)
class Variant:
    """``files`` are those below ``harness/``, by path."""

    files: Mapping[str, str] = field(default_factory=dict)
    which: Which = Which.HEAD

    def told(self) -> str:
        """The rules as the model reads them; empty without any. Raises ValueError for a playbook that is none."""
        return playbook.told(playbook.parse(self.files.get(playbook.PATH, "")))

    def conversation(self, task: Task) -> tuple[Message, ...]:
        """What the model is asked for a task."""
        rules = self.told()
        system = (Message("system", (Text(rules),)),) if rules else ()
        return (*system, Message("user", (Text(task.prompt),)))
