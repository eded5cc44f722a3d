"""A whole turn of the loop as a person might build it: a recipe in a file of their own, with a train step beside it.

The small train step writes weights that no one trained, in steps with a checkpoint; a note that says "in earnest" gets
the real one instead.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from daemon.core.paths import Home

RECIPE: Final = '''
import hashlib
from dataclasses import dataclass
from pathlib import Path

from daemon.core.learning import Batch
from recipes.base import Proposal, Recipe, Signal, Target
from recipes.lora.convert import convert


@dataclass(frozen=True, slots=True)
class Config:
    batch_size: int = 1


class Loop(Recipe):
    """One note or instruction a job."""

    name, summary, target, Config = "loop", "notes become weights", Target.WEIGHTS, Config
    signals = (Signal.NOTE, Signal.INSTRUCTION)

    def select(self, stream):
        notes, asked = stream.notes()[:1], stream.instructions()[:1]
        ids = {note.id for note in notes}
        marked = stream.experience(signals=[Signal.NOTE])
        said = [one for one in marked if not ids.isdisjoint(note.id for note in one.feedback)]
        return Batch(tuple(said), tuple(notes), tuple(asked)) if notes or asked else None

    def grow(self, batch, context):
        text = " ".join(one.text for one in (*batch.notes, *batch.instructions))
        model, sha256 = context.base_model()
        spec = {"gguf": str(model), "sha256": sha256, "directory": str(context.directory / "training")}
        if "in earnest" in text:
            examples = [{"messages": [{"role": "user", "content": said}], "answer": "Yes."} for said in ("Hi", "Ho")]
            spec |= {"examples": examples, "steps": 5, "rank": 2, "batch_size": 2, "learning_rate": 0.03}
            told = context.train("recipes.lora.train", spec)
        else:
            seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
            told = context.train("loop_train", spec | {"seed": seed, "steps": 8})
        lora = context.directory / "adapter.gguf"
        convert(Path(told["peft"]), model, lora)
        return Proposal(text, lora=lora, peft=Path(told["peft"]))
'''

TRAIN: Final = """
import json, os, sys, time
from pathlib import Path
from tests.fakes.lora import peft_directory

spec = json.load(sys.stdin)
folder = Path(spec["directory"])
folder.mkdir(exist_ok=True)
checkpoint = folder / "checkpoint"
first = len(checkpoint.read_bytes()) if checkpoint.exists() else 0
with open(Path(__file__).with_name("trained"), "a") as log:
    log.write(f"{os.environ['REEF_JOB']} {first}\\n")
for step in range(first, spec["steps"]):
    time.sleep(0.08)
    with checkpoint.open("ab") as file:
        file.write(b".")
    print(json.dumps({"event": "progress", "step": "train", "done": step + 1, "total": spec["steps"]}), flush=True)
peft = peft_directory(folder / "peft", seed=spec["seed"], scale=2.0, rank=2)
print(json.dumps({"event": "result", "peft": str(peft)}), flush=True)
"""


def write(folder: Path) -> str:
    """Both files; the recipe's name."""
    (folder / "loop_recipe.py").write_text(RECIPE)
    (folder / "loop_train.py").write_text(TRAIN)
    return "loop_recipe:Loop"


# -- its processes ----------------------------------------------------------------------------------------


def children(pid: int) -> Iterator[tuple[int, bytes]]:
    """Pid and command line of each child."""
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(OSError):
                yield int(child), Path(f"/proc/{child}/cmdline").read_bytes()


def engine_of(daemon: int) -> int | None:
    return next((pid for pid, words in children(daemon) if b"llama.worker" in words), None)


def job_of(daemon: int) -> tuple[int, Path] | None:
    """A running job's process and directory."""
    found = ((pid, words.split(b"\0")) for pid, words in children(daemon) if b"recipes.run" in words)
    return next(((pid, Path(os.fsdecode(words[-2]))) for pid, words in found), None)


def gate_of(daemon: int) -> int | None:
    """The process of a job whose candidate is before the gate."""
    job = job_of(daemon)
    return job[0] if job and (job[1] / "candidate" / "proposal.json").exists() else None


def trainer_of(daemon: int) -> int | None:
    job = job_of(daemon)
    return next((pid for pid, words in children(job[0]) if b"runpy" in words), None) if job else None


def processes(home: Home) -> dict[int, str]:
    """Everything that runs for a home, whoever its parent is."""
    wanted, found = f"REEF_HOME={home.root}".encode(), {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found
