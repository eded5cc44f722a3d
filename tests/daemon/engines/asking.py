"""Asking an engine, and reading its answer, in one line each."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.core.config import EmbeddedConfig
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta, ToolArguments, ToolStart
from daemon.core.records import ChatRequest, Message, Role, Sampling, Text, TokenSpan, Tool
from daemon.engines.base import LoraFile, ModelFile
from daemon.engines.llama.watch import PATIENCE, Patience
from daemon.engines.llama_cpp import LlamaCpp

#: Nothing here takes so long that is not broken, on a busy machine either.
DEADLINE = 120.0

WEATHER = Tool(
    "get_weather",
    "The weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
)
CLOCK = Tool("clock", "The time.", {"type": "object", "properties": {}})


@dataclass
class Answer:
    events: list[EngineEvent] = field(default_factory=list)

    @property
    def started(self) -> Started:
        assert isinstance(self.events[0], Started)
        return self.events[0]

    @property
    def finished(self) -> Finished:
        assert isinstance(self.events[-1], Finished)
        return self.events[-1]

    @property
    def span(self) -> TokenSpan:
        assert self.finished.span is not None
        return self.finished.span

    @property
    def deltas(self) -> list[TextDelta]:
        return [event for event in self.events if isinstance(event, TextDelta)]

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Name and arguments of each tool call."""
        found: list[tuple[str, str]] = []
        for event in self.events:
            if isinstance(event, ToolStart):
                found.append((event.name, ""))
            elif isinstance(event, ToolArguments):
                found[event.index] = (found[event.index][0], found[event.index][1] + event.text)
        return found


def say(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def ask(*said: str | Message, tokens: int | None = 16, temperature: float | None = 0, **more: Any) -> ChatRequest:
    """A request: strings are the user's and the assistant's in turn; ``more`` goes into Sampling or ChatRequest."""
    messages = tuple(
        one if isinstance(one, Message) else say("assistant" if index % 2 else "user", one)
        for index, one in enumerate(said)
    )
    fields = Sampling.__dataclass_fields__
    sampling = {key: value for key, value in more.items() if key in fields}
    rest = {key: value for key, value in more.items() if key not in fields}
    return ChatRequest(
        "default",
        messages,
        sampling=Sampling(max_tokens=tokens, temperature=temperature, **sampling),
        **rest,
    )


async def collect(
    engine: LlamaCpp, request: ChatRequest, *, lora: LoraFile | None = None, background: bool = False
) -> Answer:
    answer = Answer()
    async with asyncio.timeout(DEADLINE):
        async for event in engine.generate(request, lora=lora, background=background):
            answer.events.append(event)
    return answer


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.01)


def model_file(path: Path, *, sha256: str = "5a" * 32, name: str = "smollm2") -> ModelFile:
    return ModelFile(name, path, path.stat().st_size, sha256, "apache-2.0", "test")


def new_engine(
    path: Path, log: Path, *, sha256: str = "5a" * 32, patience: Patience = PATIENCE, **config: Any
) -> LlamaCpp:
    """An engine with the model at ``path``; ``config`` is `EmbeddedConfig`'s.

    One thread: on a busy machine two that wait for each other are slower than one (measured: 8 against 30 tokens/s).
    """
    file = model_file(path, sha256=sha256)
    settings = EmbeddedConfig(**{"threads": 1, **config})
    return LlamaCpp(model=lambda: file, config=settings, log=log, patience=patience)
