"""How engines did lately, from what was recorded of their answers: speed, and how much of prompts their caches had.

What an engine measures of itself counts before what is seen of it from here.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from daemon.core.records import Appended, End, Exchange
from daemon.engines.base import EngineStatus

#: Answers that "lately" means.
_ANSWERS: Final = 20
#: Less than this says nothing of speed: most of it may have come in one packet.
_LEAST_TOKENS: Final = 16
_LEAST_US: Final = 200_000


@dataclass(slots=True)
class _Answers:
    """An engine's last: (tokens, µs from the first byte on) where streamed, and (tokens cached, of the prompt)."""

    paces: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_ANSWERS))
    prompts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_ANSWERS))


class Lately:
    """Used on the event loop alone."""

    def __init__(self) -> None:
        self._engines: dict[str, _Answers] = {}

    def ended(self, exchange: Exchange, appended: Appended | None) -> None:
        """Note an exchange (`daemon.server.recorder.Observer`)."""
        if appended is None or exchange.end is not End.OK:
            return
        seen, usage = self._engines.setdefault(exchange.engine, _Answers()), appended.usage
        if usage.prompt:
            seen.prompts.append((min(usage.cached, usage.prompt), usage.prompt))
        if exchange.stream and exchange.first_byte_us is not None and usage.completion >= _LEAST_TOKENS:
            took = exchange.duration_us - exchange.first_byte_us
            if took >= _LEAST_US:
                seen.paces.append((usage.completion, took))

    def of(self, status: EngineStatus) -> EngineStatus:
        """The status with what is known from here; None stays where that is nothing."""
        seen = self._engines.get(status.name)
        if seen is None:
            return status
        pace, hit = status.tokens_per_second, _ratio(seen.prompts)
        if pace is None and (seen_pace := _ratio(seen.paces)) is not None:
            pace = seen_pace * 1e6
        return replace(
            status,
            tokens_per_second=None if pace is None else round(pace, 1),
            cache_hit=None if hit is None else round(hit, 3),
        )


def _ratio(pairs: deque[tuple[int, int]]) -> float | None:
    return sum(one for one, _ in pairs) / sum(of for _, of in pairs) if pairs else None
