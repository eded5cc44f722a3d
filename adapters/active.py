"""Which release each scenario's next run takes, and what a start without the daemon needs to know.

The number never goes down: that is what stops an old release, signed once and long replaced, from being served again.
A rollback is a new release with a higher number.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adapters.delivery import Delivery
from daemon.core.errors import Untrusted
from daemon.core.paths import write_private


class Active(NamedTuple):
    """``serves``: address and models, as the daemon told them last. ``seal``: of what was found to be signed."""

    release_id: str
    number: int
    serves: Mapping[str, Any]
    seal: str = ""


def load(path: Path, scenario: str) -> Active | None:
    """None where no run of the scenario has begun yet, or the file cannot be read."""
    try:
        known = Active(**_all(path)[scenario])
    except (KeyError, TypeError):
        return None
    whole = all(isinstance(value, kind) for value, kind in zip(known, (str, int, dict, str), strict=True))
    return known if whole else None


def releases(path: Path) -> set[str]:
    """Those in use, of all scenarios."""
    try:
        return {str(known["release_id"]) for known in _all(path).values()}
    except (KeyError, TypeError):
        return set()


def save(path: Path, scenario: str, active: Active) -> None:
    """Call it with the turn held. What a start that was slower found must not undo a later one."""
    last = load(path, scenario)
    if last == active or (last is not None and last.number > active.number):
        return
    write_private(path, json.dumps({**_all(path), scenario: active._asdict()}, indent=2).encode())


def forget(path: Path, scenario: str) -> None:
    """The person removed the scenario: one of that name begins anew. Call it with the turn held."""
    known = _all(path)
    if known.pop(scenario, None) is not None:
        write_private(path, json.dumps(known, indent=2).encode())


def _all(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def forward(active: Active | None, told: Delivery, path: Path) -> Delivery:
    """``told``, unless it would be a step back. Raises Untrusted."""
    if active is not None and (
        told.number < active.number or (told.number == active.number and told.release_id != active.release_id)
    ):
        raise Untrusted(
            f"release {told.release_id} (number {told.number}) is refused: {active.release_id} "
            f"(number {active.number}) was in use already",
            hint=f"if the store was replaced on purpose: rm {path}",
        )
    return told
