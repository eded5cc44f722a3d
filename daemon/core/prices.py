"""What an exchange costs in US dollars: what its provider says, else by prices that a person wrote down, else unknown.

Reckoned once, when it is recorded: a price that changes later does not rewrite what was paid. Unknown is None, never 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from daemon.core.records import Usage

_TOKENS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Of a model, in US dollars per million tokens. What is not given costs as ``input`` does."""

    input: float
    output: float
    #: Prompt tokens that were read from the provider's cache.
    cached: float | None = None
    #: Those that were written into it, where the provider counts them (Anthropic does).
    cache_write: float | None = None


#: The engine inside: electricity is not counted.
FREE: Final[Mapping[str, Price]] = {"*": Price(0.0, 0.0)}


def cost(usage: Usage, prices: Mapping[str, Price], models: Iterable[str | None]) -> float | None:
    """``models`` are the names of the one that answered; None where nobody knows what it costs."""
    if usage.cost is not None:
        return usage.cost
    price = _price(prices, [name for name in models if name])
    if price is None:
        return None
    if not (usage.prompt or usage.completion) and (price.input or price.output):
        return None  # nothing was counted: an error, or an answer that was cut off
    fresh = max(0, usage.prompt - usage.cached - usage.written)
    dollars = (
        fresh * price.input
        + usage.cached * (price.input if price.cached is None else price.cached)
        + usage.written * (price.input if price.cache_write is None else price.cache_write)
        + usage.completion * price.output
    )
    return dollars / _TOKENS


def _price(prices: Mapping[str, Price], names: list[str]) -> Price | None:
    """An exact name goes before the globs, which are tried in order."""
    for name in names:
        if name in prices:
            return prices[name]
    return next((price for glob, price in prices.items() if any(fnmatchcase(name, glob) for name in names)), None)
