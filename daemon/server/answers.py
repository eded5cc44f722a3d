"""Answers for jobs: the engine that serves is asked on a recipe's behalf, behind people's requests, off the record.

A job has no agent whose key could be passed on, so a provider is asked with the key of the configuration or not at all.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from daemon.core.config import Config
from daemon.core.errors import BadWeights, EngineError, UsageError
from daemon.core.generation import EngineEvent, Finished, TextDelta
from daemon.core.keys import FORMS
from daemon.core.paths import NotPlain, open_plain
from daemon.core.records import ChatRequest, Dialect, Message, Sampling, Text
from daemon.engines.base import LoraFile, RelayEngine, TokenEngine
from daemon.server.routing import Router
from daemon.server.translation import Translation, spoken
from daemon.store.db import Store
from recipes.base import Answer

#: Reasons to stop that are not the model's own.
_CUT: Final = frozenset({"length"})
_ROLES: Final = frozenset({"system", "user", "assistant"})
_TOKENS_MOST: Final = 32_768


@dataclass(frozen=True, slots=True)
class Asked:
    messages: tuple[tuple[str, str], ...]
    which: str
    max_tokens: int
    temperature: float
    seed: int


def parse(data: dict[str, Any]) -> Asked:
    """Raises UsageError naming the field and its value."""
    messages = data.get("messages")
    if not (isinstance(messages, list) and messages and all(_is_message(said) for said in messages)):
        raise UsageError("messages is not a list of {role, content}", hint=f"roles: {', '.join(sorted(_ROLES))}")
    which = data.get("which", "base")
    if which not in ("head", "base", "candidate"):
        raise UsageError(f"which {which!r} is not head, base or candidate")
    numbers = {"max_tokens": data.get("max_tokens", 256), "seed": data.get("seed", 0)}
    for name, value in numbers.items():
        if type(value) is not int or not 0 <= value < 1 << 31:
            raise UsageError(f"{name} {value!r} is not a whole number")
    if not 1 <= numbers["max_tokens"] <= _TOKENS_MOST:
        raise UsageError(f"max_tokens {numbers['max_tokens']} is not from 1 to {_TOKENS_MOST}")
    temperature = data.get("temperature", 0.0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        raise UsageError(f"temperature {temperature!r} is not a number from 0 to 2")
    said = tuple((str(one["role"]), str(one["content"])) for one in messages)
    return Asked(said, which, numbers["max_tokens"], float(temperature), numbers["seed"])


def _is_message(said: object) -> bool:
    return isinstance(said, dict) and said.get("role") in _ROLES and isinstance(said.get("content"), str)


@dataclass(frozen=True, slots=True)
class As:
    """The model name and the dialect of an agent's request, and its release's routing: they choose the engine."""

    model: str = "default"
    dialect: Dialect = Dialect.CHAT
    routing: Mapping[str, str] = field(default_factory=dict)


async def like(store: Store, scenario: str, routing: Mapping[str, str]) -> As:
    """How a scenario's agents ask: as its last request did."""
    last = await asyncio.to_thread(store.last, scenario)
    return As(routing=routing) if last is None else As(last.model_asked, last.dialect, routing)


async def answer(router: Router, config: Config, asked: Asked, *, like: As, lora: LoraFile | None) -> Answer:
    """From the engine that answers requests ``like`` that. Raises EngineError, UsageError or BadWeights."""
    target = router.choose(like.model, like.dialect, like.routing)
    engine = target.engine
    if not isinstance(engine, RelayEngine):
        return await _generated(engine, asked, like.model, lora)
    if lora is not None:
        raise BadWeights(f"engine {engine.name!r} takes no LoRA adapter of ours", hint="engine: embedded")
    if config.engines[engine.name].key == "agent":
        raise UsageError(
            f"a job cannot ask engine {engine.name!r}: it answers with the agent's key, and a job has no agent",
            hint=f"set engines.{engine.name}.key to {FORMS}",
        )
    return await _relayed(engine, asked, replace(like, model=target.model or like.model))


def _request(asked: Asked, model: str) -> ChatRequest:
    return ChatRequest(
        model=model,
        messages=tuple(Message(role, (Text(text),)) for role, text in asked.messages),  # type: ignore[arg-type]
        sampling=Sampling(max_tokens=asked.max_tokens, temperature=asked.temperature, seed=asked.seed),
    )


async def _generated(engine: TokenEngine, asked: Asked, model: str, lora: LoraFile | None) -> Answer:
    text, finished = await _read(engine.generate(_request(asked, model), lora=lora, background=True))
    weights = engine.weights() if finished.span is None else finished.span.weights
    return Answer(text, finished.reason not in _CUT, finished.usage.completion, weights)


async def _relayed(engine: RelayEngine, asked: Asked, like: As) -> Answer:
    """As one whole answer."""
    translation = Translation(engine, spoken(engine, like.dialect), _request(asked, like.model), "job")
    try:
        refusal = await translation.ask([])
        if refusal is not None:
            said = f"engine {engine.name!r} answered {refusal.status}: {refusal.message[:200]}"
            raise EngineError(said, hint="reef status")
        text, finished = await _read(translation.events())
    finally:
        await translation.close()
    return Answer(text, finished.reason not in _CUT, finished.usage.completion, None)


async def _read(events: AsyncIterator[EngineEvent]) -> tuple[str, Finished]:
    """All that was said, and how it ended."""
    text: list[str] = []
    finished: Finished | None = None
    async for event in events:
        if isinstance(event, TextDelta):
            text.append(event.text)
        elif isinstance(event, Finished):
            finished = event
    if finished is None:
        raise EngineError("the engine ended without an end", hint="reef logs")
    return "".join(text), finished


def lora_file(path: Path, base: str | None) -> LoraFile:
    """A candidate's adapter, hashed. Raises BadWeights when there is none."""
    none = BadWeights("the candidate has no LoRA adapter", hint="ask with which: head or base")
    if base is None:
        raise none
    try:
        with open_plain(path) as file:
            return LoraFile(path, hashlib.file_digest(file, "sha256").hexdigest(), base)
    except (FileNotFoundError, NotPlain):
        raise none from None
