"""A job's context without a daemon: the real engine, the real training environment, real checks. For recipes' tests.

It runs the engine on an event loop in a thread of its own, since recipes are written without one.
"""

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from daemon.core.config import EmbeddedConfig
from daemon.core.errors import RecipeError
from daemon.core.generation import Finished, TextDelta
from daemon.core.learning import Check, Experience, Feedback, Instruction, Split, Task, TaskSet
from daemon.core.records import ChatRequest, Message, Sampling, TokenSpan
from daemon.core.releases import Release
from daemon.engines.base import LoraFile, ModelFile
from daemon.engines.llama_cpp import LlamaCpp
from recipes.base import Answer, Signal, Which
from recipes.lora import environment
from recipes.tasks import forms

T = TypeVar("T")


class EngineThread:
    """``with EngineThread(model) as engine``: `ask` blocks until all are answered. What the same weights were asked
    before, at temperature 0, is not asked again.
    """

    def __init__(self, model: ModelFile, log: Path) -> None:
        self.model = model
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._engine = LlamaCpp(model=lambda: model, config=EmbeddedConfig(context=2048), log=log)
        self._known: dict[object, tuple[Answer, TokenSpan]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._engine.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def load(self, lora: LoraFile) -> None:
        self._run(self._engine.load(lora))

    def ask(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling, lora: LoraFile | None = None
    ) -> list[tuple[Answer, TokenSpan]]:
        return self._run(self._all(conversations, sampling, lora))

    async def _all(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling, lora: LoraFile | None
    ) -> list[tuple[Answer, TokenSpan]]:
        at_once = asyncio.Semaphore(8)

        async def known(messages: Sequence[Message]) -> tuple[Answer, TokenSpan]:
            asked = tuple(messages), sampling, lora
            if sampling.temperature != 0 or asked not in self._known:
                self._known[asked] = await one(messages)
            return self._known[asked]

        async def one(messages: Sequence[Message]) -> tuple[Answer, TokenSpan]:
            request = ChatRequest(self.model.name, tuple(messages), sampling=sampling)
            text = []
            async with at_once:
                async for event in self._engine.generate(request, lora=lora, background=True):
                    if isinstance(event, TextDelta):
                        text.append(event.text)
                    elif isinstance(event, Finished):
                        assert event.span is not None
                        ended = event.reason == "stop"
                        answer = Answer("".join(text), ended, event.usage.completion, event.span.weights)
                        return answer, event.span
            raise AssertionError("an answer without an end")

        return list(await asyncio.gather(*map(known, conversations)))


@dataclass
class FakeContext:
    """`recipes.base.Context`. ``said`` and ``progressed`` are what the recipe told."""

    directory: Path
    engine: EngineThread
    gate: Sequence[Task] = ()
    regression: Sequence[Task] = ()
    scenario: str = "default"
    incumbent: Release | None = None
    candidate: LoraFile | None = None
    said: list[str] = field(default_factory=list)
    progressed: list[tuple[str, int, int, str]] = field(default_factory=list)
    asked: list[tuple[Which, int]] = field(default_factory=list)

    def base_model(self) -> tuple[Path, str]:
        return self.engine.model.path, self.engine.model.sha256

    def harness(self) -> Mapping[str, str]:
        return {}

    def tasks(self, set: TaskSet) -> list[Task]:
        return list({TaskSet.GATE: self.gate, TaskSet.REGRESSION: self.regression}.get(set, ()))

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        *,
        which: Which = Which.BASE,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> list[Answer]:
        self.asked.append((which, len(conversations)))
        sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
        lora = self.candidate if which is Which.CANDIDATE else None
        return [answer for answer, _ in self.engine.ask(conversations, sampling, lora)]

    def passes(self, check: Check, answer: Answer, prompt: str = "") -> bool:
        if check.form is not None:
            return forms.passes(check.form, answer.text, ended=answer.ended)
        assert check.expression is not None, "commands are not for this fake"
        return re.search(check.expression, answer.text) is not None

    def progress(self, step: str, done: int = 0, total: int = 0, note: str = "") -> None:
        self.progressed.append((step, done, total, note))

    def say(self, text: str) -> None:
        self.said.append(text)

    def train(self, module: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        lines = []
        with training(module, spec) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(json.loads(line))
                if lines[-1]["event"] == "progress":
                    self.progress(*(lines[-1][name] for name in ("step", "done", "total", "note")))
        last: dict[str, Any] = lines[-1]
        if process.returncode != 0:
            raise RecipeError(str(last["message"]), hint=last["hint"])
        return last


def training(module: str, spec: Mapping[str, Any]) -> "subprocess.Popen[str]":
    """``module`` in the training environment, told ``spec``; its lines come on stdout. A job would run it at nice 19: a
    test that has nothing to serve beside it would only wait longer.
    """
    process = subprocess.Popen(
        environment.command(module, print),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(spec))
    process.stdin.close()
    return process


@dataclass
class FakeStream:
    """`recipes.base.Stream` of what it is given."""

    given: Sequence[Experience] = ()
    said: Sequence[Feedback] = ()
    wishes: Sequence[Instruction] = ()

    def experience(
        self, *, split: Split = Split.TRAIN, signals: Sequence[Signal] = (), limit: int = 1000
    ) -> list[Experience]:
        return list(self.given)[:limit]

    def notes(self) -> list[Feedback]:
        return list(self.said)

    def instructions(self) -> list[Instruction]:
        return list(self.wishes)
