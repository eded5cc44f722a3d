"""Records as a person has them, and every kind of query over them. Part of `bench.store`."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from daemon.core.records import End, Exchange
from daemon.store.db import Store
from daemon.store.query import parse


def varied(one: Exchange, number: int, records: int) -> Exchange:
    """Agents, models, failures and sixty days, as a person's records have them."""
    change: dict[str, object] = {
        "agent": ("pi", "claude-code", "codex")[number // 60 % 3],
        "model_asked": "rare" if number % 9973 == 0 else ("large", "small")[number // 60 % 2],
        "started_ns": time.time_ns() - (records - number) * 60 * 86_400_000_000_000 // records,
    }
    if number % 50 == 49:
        change |= {"end": End.ERROR, "status": 429 if number % 500 == 49 else 500, "error": "rate limit"}
    return replace(one, **change)  # type: ignore[arg-type]


def searches(store: Store, session: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kind of query, and the ones that find little or nothing in a lot."""
    for text in (
        "answer", "answer -rate", "answer 77", "ans*", '"answer 4242"', "agent:pi", "agent:pi status:failed",
        "status:429", "model:rare", "model:rare agent:codex", "since:1d", "since:40d until:39d",
        "answer since:40d until:39d",
        f"answer session:{session}", "kind:retry", "kind:side", "has:feedback", "release:none@1",
        "-agent:pi -model:large", "agent:nobody answer", "-nothing agent:pi",
    ):  # fmt: skip
        yield f"search {text[:60]}", lambda text=text: store.search(parse(text))  # type: ignore[misc]
    for text in ("agent:pi", "answer", "status:429", "kind:side"):
        yield f"sessions {text}", lambda text=text: store.sessions_with(parse(text))  # type: ignore[misc]
    yield "rollup, 30 days", lambda: store.rollups("day", since_ns=time.time_ns() - 30 * 86_400_000_000_000)
    yield (
        "rollup, 48 hours by agent and model",
        lambda: store.rollups("hour", since_ns=time.time_ns() - 48 * 3_600_000_000_000, by=("agent", "model")),
    )
