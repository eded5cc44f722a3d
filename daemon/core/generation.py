"""What an engine emits while it answers: one `Started`, deltas, one `Finished`. Dialects render these to bytes."""

from dataclasses import dataclass
from typing import Literal

from daemon.core.records import TokenSpan, Usage


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One sampled token: its id, its text, log p under the untempered model, and the ``top`` alternatives."""

    id: int
    text: str
    logprob: float
    top: tuple[tuple[int, str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """The prompt is accepted and fits. Comes first, exactly once."""

    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str
    tokens: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingEnd:
    """A thought is whole; what comes next is another. ``seal``: see `Thinking`."""

    seal: str = ""


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """Words with which the model refuses, where its vendor tells them from an answer's."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A call begins, and every one before it is over."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArguments:
    index: int
    text: str


FinishReason = Literal["stop", "stop_sequence", "length", "tool_calls", "refusal"]


@dataclass(frozen=True, slots=True)
class Finished:
    """Comes last, exactly once, unless the engine raised."""

    reason: FinishReason
    usage: Usage
    span: TokenSpan | None = None
    stop_sequence: str | None = None


EngineEvent = Started | TextDelta | ThinkingDelta | ThinkingEnd | RefusalDelta | ToolStart | ToolArguments | Finished
