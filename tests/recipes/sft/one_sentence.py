"""The habit that the examples teach, as experience, tasks and a context: what `reef demo` does without its daemon."""

import hashlib
from pathlib import Path
from typing import Any

import yaml

from daemon.core.learning import Check, Experience, Feedback, Split, Task, TaskSet
from daemon.core.records import Message, Text
from daemon.engines.base import ModelFile
from tests.conftest import ROOT

FOLDER = ROOT / "reef_cli" / "demo"
NOTE = "Answer in one short sentence."
CHECK = Check(form="one_sentence")
TOKENS = 48


def lines(name: str) -> list[str]:
    return (FOLDER / name).read_text("utf-8").splitlines()


def question(text: str) -> tuple[Message, ...]:
    return (Message("user", (Text(text),)),)


def experience(number: int, text: str, **more: Any) -> Experience:
    given = {"answer": "It is a long story. It goes on.", "staleness": 0, **more}
    return Experience(
        receipt=f"record-{number}",
        session=f"session-{number}",
        scenario="default",
        split=Split.TRAIN,
        seq=number,
        release_id="base",
        weights=None,
        prompt=question(text),
        **given,
    )


def note(text: str = NOTE, id: str = "note") -> Feedback:
    return Feedback(id, None, text, None, general=True)


def gate(check: Check = CHECK) -> list[Task]:
    return [
        Task(f"gate-{number}", "default", TaskSet.GATE, text, check, max_tokens=TOKENS)
        for number, text in enumerate(lines("held_out.txt"))
    ]


def regression() -> list[Task]:
    facts = yaml.safe_load((FOLDER / "regression.yaml").read_text("utf-8"))
    return [
        Task(f"fact-{number}", "default", TaskSet.REGRESSION, fact["prompt"], Check(**fact["check"]),
             max_tokens=fact["max_tokens"])
        for number, fact in enumerate(facts)
    ]  # fmt: skip


def model_file(path: Path) -> ModelFile:
    return ModelFile("test", path, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest(), "", "")
