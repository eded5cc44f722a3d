"""Scenarios as they appear: one comes into being on first use, so a slip of the pen makes one too. The log says so."""

import logging
from collections.abc import Iterable
from typing import Final

from daemon.core.records import Appended, Exchange

_log = logging.getLogger("reef.scenarios")

#: Shorter names are too much alike to tell.
_SHORTEST: Final = 4


class Scenarios:
    """Those that have records. Told of every exchange at its end."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = set(known)

    def ended(self, exchange: Exchange, appended: Appended | None) -> None:
        name = exchange.scenario
        if appended is None or name in self._known:
            return
        if (near := next((one for one in sorted(self._known) if is_slip(name, one)), None)) is not None:
            _log.warning(
                "scenario %r is new and one letter from %r: a likely typo in x-reef-scenario of %s",
                name, near, exchange.agent or "an agent",
            )  # fmt: skip
        self._known.add(name)


def is_slip(one: str, other: str) -> bool:
    """Whether two names are a letter apart: left out, too many, another, or two the wrong way round. Names that count
    (``run-1``, ``run-2``) are meant to be.
    """
    if min(len(one), len(other)) < _SHORTEST or abs(len(one) - len(other)) > 1 or one == other:
        return False
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, others = one[at:], other[at:]
    if rest[:1].isdigit() or others[:1].isdigit():
        return False
    swapped = len(rest) > 1 and rest[:2] == others[1::-1] and rest[2:] == others[2:]
    return swapped or rest[1:] == others[1:] or rest[1:] == others or rest == others[1:]
