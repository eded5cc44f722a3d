"""One request's answer as it grows: from sampled tokens to events, and when it ends."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from daemon.core.generation import EngineEvent, Finished, FinishReason, TextDelta, TokenLogprob
from daemon.core.records import ChatRequest, Sampling, TokenSpan, Usage
from daemon.engines.base import LoraFile
from daemon.engines.llama.calls import CallParser
from daemon.engines.llama.model import Vocab
from daemon.engines.llama.sampling import Sampler
from daemon.engines.llama.text import Characters, StopStrings

#: An answer that no one bounded ends where so many tokens, looked at every so often, are one short cycle: a small model
#: that loops would go on until its context is full. Lists and tables that people ask for are shorter, or not as even.
_LOOPED: Final = 512
_CYCLE_MOST: Final = 64
_OFTEN: Final = 32


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request made ready: its text, its sampler, the names of the tools it may call. Independent of any slot."""

    text: bytes
    sampling: Sampling
    sampler: Sampler
    tools: frozenset[str]
    one_call: bool

    @classmethod
    def of(cls, request: ChatRequest, text: bytes, sampler: Sampler) -> "Prompt":
        offered = frozenset(tool.name for tool in request.tools) if request.tool_choice.mode != "none" else frozenset()
        return cls(text, request.sampling, sampler, offered, request.parallel_tool_calls is False)


class Generation:
    """A request in a slot. ``cancelled`` is set from the thread that reads commands."""

    def __init__(
        self,
        number: int,
        prompt: Prompt,
        vocab: Vocab,
        *,
        lora: LoraFile | None = None,
        background: bool = False,
        alone: bool = False,
    ) -> None:
        """``alone``: in the background too, and see `daemon.engines.llama.alone`."""
        self.number = number
        self.prompt = prompt
        self.lora = lora
        self.background = background
        self.alone = alone
        self.cancelled = False
        self.finish: FinishReason | None = None
        self.prompt_ids: list[int] = []
        self.cached = 0
        self.completion_ids: list[int] = []
        self._vocab = vocab
        self._logprobs: list[float] = []
        self._characters = Characters()
        self._stops = StopStrings(prompt.sampling.stop)
        self._calls = CallParser(prompt.tools)
        self._told: list[TokenLogprob] = []

    def push(self, token: int, logprob: float, top: list[tuple[int, float]]) -> list[EngineEvent]:
        """Take a sampled token; sets ``finish`` when it is the last."""
        self.completion_ids.append(token)
        self._logprobs.append(logprob)
        if self._vocab.is_end(token):
            self.finish = "stop"
            return []
        if self.prompt.sampling.logprobs:
            self._told.append(self._tell(token, logprob, top))
        shown = b"" if self._vocab.is_control(token) and not self.prompt.tools else self._vocab.piece(token)
        events = self._text(self._characters.feed(shown))
        limit = self.prompt.sampling.max_tokens
        if self._stops.hit is not None:
            self.finish = "stop_sequence"
        elif self.prompt.one_call and self._calls.calls:
            self.finish = "tool_calls"
        elif self._loops() if limit is None else len(self.completion_ids) >= limit:
            self.finish = "length"
        return events

    def _loops(self) -> bool:
        count = len(self.completion_ids)
        if count < _LOOPED or count % _OFTEN:
            return False
        said = self.completion_ids[-_LOOPED:]
        return any(said[length:] == said[:-length] for length in range(1, _CYCLE_MOST + 1))

    def end(self, weights: str) -> list[EngineEvent]:
        """The last events, once ``finish`` is set."""
        events = self._text(self._characters.finish())
        if self._stops.hit is None:
            events += self._attach(self._calls.feed(self._stops.finish()))
        events += self._attach(self._calls.finish())
        if self._told:
            events.append(TextDelta("", tuple(self._told)))
        reason: FinishReason = self.finish or "stop"
        if self._calls.calls and reason == "stop":
            reason = "tool_calls"
        usage = Usage(prompt=len(self.prompt_ids), completion=len(self.completion_ids), cached=self.cached)
        span = TokenSpan(tuple(self.prompt_ids), tuple(self.completion_ids), tuple(self._logprobs), weights)
        return [*events, Finished(reason, usage, span, self._stops.hit)]

    def _text(self, text: str) -> list[EngineEvent]:
        return self._attach(self._calls.feed(self._stops.feed(text))) if text else []

    def _attach(self, events: Sequence[EngineEvent]) -> list[EngineEvent]:
        """Tokens told of travel with the next text that is sent."""
        told: list[EngineEvent] = list(events)
        for index, event in enumerate(told):
            if isinstance(event, TextDelta) and self._told:
                told[index] = replace(event, tokens=tuple(self._told))
                self._told = []
        return told

    def _tell(self, token: int, logprob: float, top: list[tuple[int, float]]) -> TokenLogprob:
        def text(one: int) -> str:
            return self._vocab.piece(one).decode(errors="replace")

        return TokenLogprob(token, text(token), logprob, tuple((one, text(one), p) for one, p in top))
