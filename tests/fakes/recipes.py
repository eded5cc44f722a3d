"""Recipes as a person might write them, as files of their own outside the repository: a good one, and hostile ones."""

from pathlib import Path
from typing import Final

#: Forty lines: notes and instructions become a rule, word for word; slow where its settings say so.
GOOD: Final = """
import time
from dataclasses import dataclass

from daemon.core import playbook
from daemon.core.learning import Batch
from recipes.base import Acquisition, Proposal, Recipe, Signal, Target


@dataclass(frozen=True, slots=True)
class Config:
    batch_size: int = 1
    at_most: int = 3
    seconds: float = 0.0


class MyRecipe(Recipe):
    name = "mine"
    summary = "A note becomes a rule."
    signals = (Signal.NOTE, Signal.INSTRUCTION)
    acquisition = Acquisition.REACTIVE
    target = Target.HARNESS
    Config = Config

    def select(self, stream):
        notes, asked = stream.notes(), stream.instructions()
        said = stream.experience(signals=[Signal.NOTE])
        return Batch(tuple(said), tuple(notes[: self.config.at_most]), tuple(asked)) if notes or asked else None

    def grow(self, batch, context):
        rules = playbook.parse(context.harness().get(playbook.PATH, ""))
        texts = [note.text for note in batch.notes] + [asked.text for asked in batch.instructions]
        for number, text in enumerate(texts):
            context.progress("grow", number, len(texts), text)
            time.sleep(self.config.seconds)
            rules = playbook.added(rules, text)
        print("what a recipe prints goes to its log")
        return Proposal(f"{len(texts)} rules from what you said", {playbook.PATH: playbook.dump(rules)})
"""

_HOSTILE: Final = """
import os, subprocess, sys, time
from dataclasses import dataclass
from daemon.core.learning import Batch, Feedback
from recipes.base import Proposal, Recipe, Signal, Target

@dataclass(frozen=True, slots=True)
class Config:
    pass

def channels():
    for fd in range(3, 30):
        try:
            os.fstat(fd)
            yield fd
        except OSError:
            pass

class Hostile(Recipe):
    name, summary, signals, target, Config = "hostile", "", (Signal.NOTE,), Target.HARNESS, Config

    def select(self, stream):
        {body}
        return None

    def grow(self, batch, context):
        return None
"""


def hostile(folder: Path, name: str, body: str) -> str:
    """Write a recipe whose `select` runs ``body``; its name for the configuration."""
    indented = body.strip().replace("\n", "\n        ")
    (folder / f"{name}.py").write_text(_HOSTILE.replace("{body}", indented))
    return f"{name}:Hostile"
