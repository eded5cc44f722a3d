"""What models are being fetched, for those who only watch: ``GET /reef/models`` and the event ``model``."""

from dataclasses import dataclass

from daemon.engines.sources import public
from daemon.server.events import Changes


@dataclass(slots=True)
class Fetch:
    """``done`` of ``total`` bytes in ``phase``; total 0: not known."""

    source: str
    phase: str
    done: int
    total: int

    @property
    def told(self) -> tuple[str, int]:
        """What has to change before it is worth telling again: the phase, a whole percent."""
        return self.phase, self.done * 100 // self.total if self.total else 0


class Fetching:
    """Use from the event loop alone."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._fetches: dict[str, Fetch] = {}

    def all(self) -> list[Fetch]:
        return list(self._fetches.values())

    def at(self, source: str, phase: str, done: int, total: int) -> None:
        before, now = self._fetches.get(source), Fetch(_shown(source), phase, done, total)
        self._fetches[source] = now
        if before is None or before.told != now.told:
            self._changes.tell("model", now)

    def over(self, source: str) -> None:
        """It is here, or has failed."""
        self._fetches.pop(source, None)
        self._changes.tell("model", {"source": _shown(source)})


def _shown(source: str) -> str:
    try:
        return public(source)
    except ValueError:  # no URL, as will be said to who asked
        return "a URL"
