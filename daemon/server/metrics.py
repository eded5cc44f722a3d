"""Numbers for Prometheus, and its text format (version 0.0.4).

Labels are closed words and names from the configuration, never what a client sent: the number of series is bounded,
and no secret can become a label.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from daemon.core.records import Appended, Exchange

#: Upper bounds in seconds: from an answer out of a cache to a long local generation.
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: samples by labels; a histogram's are its distributions."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    samples: "Mapping[Labels, float | Distribution]"


class Distribution:
    """How many values fell below each of `BUCKETS`, their number and sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds


class Metrics:
    """Counts since the daemon's start. Used on the event loop alone."""

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._tokens: Counter[Labels] = Counter()
        self._costs: dict[Labels, float] = {}
        self._durations: dict[Labels, Distribution] = {}
        self._first_bytes: dict[Labels, Distribution] = {}

    def ended(self, exchange: Exchange, appended: Appended | None) -> None:
        """Count an exchange (`daemon.server.recorder.Observer`)."""
        engine = ("engine", exchange.engine or "none")
        where = (("dialect", exchange.dialect.value), engine)
        kind = "none" if appended is None else appended.kind.value
        self._requests[(*where, ("end", exchange.end.value), ("kind", kind))] += 1
        self._durations.setdefault(where, Distribution()).add(exchange.duration_us / 1e6)
        if exchange.first_byte_us is not None:
            self._first_bytes.setdefault(where, Distribution()).add(exchange.first_byte_us / 1e6)
        if appended is not None:
            usage = appended.usage
            for name, count in (
                ("prompt", usage.prompt), ("cached", usage.cached),
                ("completion", usage.completion), ("reasoning", usage.reasoning),
            ):  # fmt: skip
                self._tokens[(engine, ("type", name))] += max(0, count)
            if usage.cost is not None:
                self._costs[(engine,)] = self._costs.get((engine,), 0.0) + usage.cost

    def families(self) -> list[Family]:
        return [
            Family("reef_requests_total", "counter", "Exchanges by how they ended.", self._requests),
            Family(
                "reef_request_duration_seconds", "histogram", "From a request's arrival to its answer's end.",
                self._durations,
            ),
            Family(
                "reef_first_byte_seconds", "histogram", "From a request's arrival to its answer's first byte.",
                self._first_bytes,
            ),
            Family(
                "reef_tokens_total", "counter", "Tokens of recorded exchanges; cached ones are part of the prompt's.",
                self._tokens,
            ),
            Family(
                "reef_cost_usd_total", "counter", "What recorded exchanges cost, of which it is known.", self._costs
            ),
        ]  # fmt: skip


def text(families: Iterable[Family]) -> bytes:
    """All of them as Prometheus reads them."""
    return "".join(line + "\n" for family in families for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.type}"
    for labels, value in family.samples.items():
        if isinstance(value, Distribution):
            yield from _distribution(family.name, labels, value)
        else:
            yield _sample(family.name, labels, value)


def _distribution(name: str, labels: Labels, told: Distribution) -> Iterator[str]:
    below = 0
    for bound, count in zip((*map(repr, BUCKETS), "+Inf"), told.counts, strict=True):
        below += count
        yield _sample(f"{name}_bucket", (*labels, ("le", bound)), below)
    yield _sample(f"{name}_sum", labels, told.sum)
    yield _sample(f"{name}_count", labels, below)


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
