"""The demo's scripted person: asks ordinary questions through the agents' door, as any program would.

Uses the agent token over TCP, never the control socket. What it asks stands in the data files beside this module.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any, Final

from daemon.core.errors import ReefError
from reef_cli.demo.speaker import Answer, Speaker

#: What the person types, once.
NOTE = "Answer in one short sentence."
#: Tokens an answer may have, in training, in the gate and here.
MAX_TOKENS = 48
#: Asked at once, as several agents would.
AT_ONCE = 8
#: A person in conversation pauses; and training only gets what answering leaves.
_THINKING_SECONDS: Final = 2.0
_FEW: Final = 3


def lines(name: str) -> list[str]:
    """The lines of one of the data files."""
    return [line.strip() for line in _text(name).splitlines() if line.strip() and not line.startswith("#")]


def tasks(name: str) -> list[dict[str, Any]]:
    """The tasks in one of the data files."""
    import yaml  # not at import, as everywhere

    found: list[dict[str, Any]] = yaml.safe_load(_text(name))
    return found


def _text(name: str) -> str:
    return files("reef_cli.demo").joinpath(name).read_text(encoding="utf-8")


def ask(speaker: Speaker, questions: Sequence[str]) -> list[Answer]:
    """Each question in a conversation of its own; answers in the order of the questions."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda question: speaker.ask(question, max_tokens=MAX_TOKENS), questions))


class Traffic:
    """A person who goes on asking while everything else happens: ``with Traffic(...) as traffic``."""

    def __init__(self, speaker: Speaker, questions: Sequence[str]) -> None:
        self.failed: list[str] = []
        self.answered: Counter[str] = Counter()
        self._speaker = speaker
        self._questions = questions
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def __enter__(self) -> "Traffic":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def wait_for(self, release_id: str, seconds: float) -> bool:
        """Whether a release has given a few answers within that time."""
        deadline = time.monotonic() + seconds
        while self.answered[release_id] < _FEW and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.answered[release_id] >= _FEW

    def _run(self) -> None:
        number = 0
        while not self._done.is_set():
            try:
                question = self._questions[number % len(self._questions)]
                answer = self._speaker.ask(question, max_tokens=MAX_TOKENS)
                self.answered[answer.release] += 1
            except ReefError as error:
                self.failed.append(error.message)
            number += 1
            self._done.wait(_THINKING_SECONDS)
