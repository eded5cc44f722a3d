"""The two seams between the data plane and whatever answers.

A `TokenEngine` answers neutral requests and emits events (the engine inside). A `RelayEngine` takes the client's bytes
and gives back the provider's (everything that speaks HTTP). The proxy knows only these.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from daemon.core.generation import EngineEvent
from daemon.core.records import ChatRequest, Dialect
from daemon.core.releases import LoraFile as LoraFile

Headers = list[tuple[bytes, bytes]]


class EngineState(StrEnum):
    OFF = "off"  # nothing loaded; the next request loads
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"  # the next request tries again
    MISSING = "missing"  # not installed, or no model chosen


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What `reef status` shows; None: unknown. ``progress`` in 0..1 while loading; speeds: of the last requests."""

    name: str
    kind: str
    state: EngineState
    model: str | None = None
    detail: str | None = None
    progress: float | None = None
    memory_mb: int | None = None
    #: Longest conversation in tokens.
    context: int | None = None
    running: int = 0
    waiting: int = 0
    restarts: int = 0
    #: Tokens/s, reading prompts and writing answers.
    prompt_speed: float | None = None
    tokens_per_second: float | None = None
    #: Which part of the prompts' tokens was in a cache, 0..1.
    cache_hit: float | None = None
    #: Digest of what answers where nothing else is released; see `TokenEngine.weights`.
    weights: str | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    #: LoRA adapters in memory.
    loras: int = 0


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One GGUF on disk. ``bytes`` is its size, ``sha256`` in hex; ``source`` is what `reef models add` was given."""

    name: str
    path: Path
    bytes: int
    sha256: str
    licence: str
    source: str


class TokenEngine(Protocol):
    """Answers a `ChatRequest` with events: Started first, Finished last."""

    name: str

    def generate(
        self, request: ChatRequest, *, lora: LoraFile | None = None, background: bool = False
    ) -> AsyncGenerator[EngineEvent, None]:
        """Closing the generator cancels: at most 50 ms later the engine works on nothing of this request.

        ``lora`` answers, None: the model alone. ``background`` requests give way to all others; at temperature 0 each
        is answered by itself, so that the same request gets the same answer whatever else goes on.
        Raises, before or after Started: ContextOverflow, BadRequest, EngineUnavailable, EngineError, BadWeights.
        """
        ...

    async def load(self, lora: LoraFile) -> float:
        """Bring a LoRA adapter in beside what serves, checked: the file's sha256, its base, finite values, and a probe
        (log-probabilities of a fixed prompt) that it changes what the model says. Raises BadWeights.

        Returns how much it changes: the mean difference of the probe's log-probabilities from the model's, in nats.
        """
        ...

    async def count(self, request: ChatRequest) -> int:
        """The prompt's length in tokens, as `generate` would read it."""
        ...

    def weights(self, lora: LoraFile | None = None) -> str | None:
        """Digest of what answers now, or would with ``lora`` (see TokenSpan.weights); None before the first load."""
        ...

    def status(self) -> EngineStatus: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RelayRequest:
    """The client's request as it goes upstream: ``path`` is below the base URL, e.g. ``/chat/completions?x=1``."""

    method: str
    path: str
    headers: Headers
    body: bytes


class RelayResponse(Protocol):
    """The provider's answer, bytes untouched (``content-encoding`` kept, not decoded)."""

    status: int
    headers: Headers

    def chunks(self) -> AsyncIterator[bytes]:
        """Raises EngineError when the provider breaks off."""
        ...

    async def close(self) -> None:
        """Drop the upstream connection if the response is not finished; return it to the pool if it is."""
        ...


@runtime_checkable
class RelayEngine(Protocol):
    """Passes bytes to a provider and back."""

    name: str
    dialects: frozenset[Dialect]

    async def relay(self, request: RelayRequest) -> RelayResponse:
        """Raises UpstreamUnreachable when no answer can be had."""
        ...

    def status(self) -> EngineStatus: ...

    async def close(self) -> None: ...
