"""The fields of a query (``field:value``): THE table behind what is read, what `reef traces search --help` tells, what
the README lists and what the dashboard hints at while a query is typed.

Standard library only: the command line shows it without loading the store.
"""

import re
from dataclasses import dataclass
from typing import Final

from daemon.core.errors import UsageError
from daemon.core.records import End, Kind
from daemon.core.rows import SignalName

#: A comparison, a number, its unit.
_BOUND: Final = re.compile(r"(<=|>=|<|>|=)?(-?[0-9]{1,12}(?:\.[0-9]{1,9})?)([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Known:
    """``values`` are all there are, or none where any is taken. ``units``: it is a number, and what its endings are
    worth; ``named``: numbers that have a name."""

    text: str
    example: str
    values: tuple[str, ...] = ()
    units: dict[str, float] | None = None
    named: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """``operator`` is one of SQL's: it may stand in a statement."""

    operator: str
    number: float


FIELDS: Final[dict[str, Known]] = {
    "agent": Known("the agent that asked", "agent:pi"),
    "model": Known("the model that it asked for", "model:default"),
    "session": Known("the session, or how its id begins", "session:ses_01k"),
    "scenario": Known("the scenario", "scenario:work"),
    "release": Known(
        "the release whose rules it carried, else the one that served it: its number, or its id", "release:12"
    ),
    "kind": Known("which line of the session it is on", "kind:side", tuple(Kind)),
    "status": Known("how it ended, or its HTTP status", "status:429", (*End, "failed")),
    "has": Known("what it comes with", "has:feedback", ("feedback", "note", "error", "tools", "secret", "signal")),
    "is": Known("what a person made of its session", "is:pinned", ("pinned",)),
    "signal": Known("what happened after it", "signal:stopped", tuple(SignalName)),
    "score": Known("a rating that stands on it", "score:bad", units={"": 1}, named={"good": 1, "bad": 0}),
    "tokens": Known("tokens in and out", "tokens:>50k", units={"": 1, "k": 1e3, "m": 1e6}),
    "cost": Known("what it cost, in US dollars, where that is known", "cost:>0.1", units={"": 1}),
    "latency": Known("how long it took", "latency:>2s", units={"": 1e6, "us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}),
}
#: They bound when it began, and take no minus.
TIMES: Final = {
    "since": Known("it began then or later", "since:2d"),
    "until": Known("it began then or earlier", "until:2026-11-30"),
}
#: What follows since: and until:.
TIME_EXAMPLES: Final = "30m, 12h, 2d, 1w or 2026-11-30"


def bound(name: str, value: str) -> Bound:
    """What ``value`` says of the number ``name``, in the store's unit (tokens, microseconds). Raises UsageError."""
    known = FIELDS[name]
    assert known.units is not None
    if known.named and value.lower() in known.named:
        return Bound("=", known.named[value.lower()])
    found = _BOUND.fullmatch(value)
    if found is None or found[3].lower() not in known.units:
        raise UsageError(f"{name}:{value} is no number", hint=f"{name}: {_takes(name, known)}")
    return Bound(found[1] or "=", float(found[2]) * known.units[found[3].lower()])


def takes(name: str) -> str:
    """What may stand behind ``name:``, for a hint."""
    if name in TIMES:
        return f"{name}: {TIME_EXAMPLES}"
    return f"{name}: {_takes(name, FIELDS[name])}"


def _takes(name: str, known: Known) -> str:
    if known.units is not None:
        endings = ", ".join(unit for unit in known.units if unit)
        words = [*(known.named or ()), "a number, or <, <=, > or >= and one"]
        return " or ".join(words) + (f"; ending in {endings}" if endings else "") + f"; for example {known.example}"
    return f"one of {', '.join(known.values)}" if known.values else f"for example {known.example}"


def markdown() -> str:
    """The README's table."""
    rows = [
        f"| `{name}:` | {known.text} | {', '.join(f'`{value}`' for value in known.values)} | `{known.example}` |"
        for name, known in {**FIELDS, **TIMES}.items()
    ]
    return "\n".join(["| field | what it is | one of | for example |", "|---|---|---|---|", *rows])
