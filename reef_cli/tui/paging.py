"""The part of a session that is held: neighbouring pages of its records, dropped at the far end when there are many."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

#: Pages that are held, each bounded in bytes by the daemon, and records that make one.
MOST: Final = 4
PAGE: Final = 50
Entry = Mapping[str, Any]


def seq(entry: Entry) -> int:
    return int(entry["record"]["seq"])


class Held:
    """``before`` and ``after`` are the cursors of what is not held, None where that is nothing."""

    def __init__(self) -> None:
        self._pages: list[list[Entry]] = []
        self.session: Mapping[str, Any] | None = None
        self.before: str | None = None
        self.after: str | None = None

    @property
    def entries(self) -> list[Entry]:
        return [entry for page in self._pages for entry in page]

    def only(self, page: Mapping[str, Any]) -> None:
        """Hold just this page."""
        self.session = page["session"]
        self._pages = [list(page["records"])] if page["records"] else []
        self.before, self.after = page["before"], page["after"]

    def earlier(self, page: Mapping[str, Any]) -> None:
        """The page before what is held."""
        self._pages.insert(0, list(page["records"]))
        self.before = page["before"]
        while len(self._pages) > MOST:
            self._pages.pop()
            self.after = str(seq(self._pages[-1][-1]))

    def later(self, page: Mapping[str, Any]) -> None:
        """The page after what is held; records that are held already are replaced."""
        self.session = page["session"]
        self.update(page["records"])
        last = seq(self._pages[-1][-1]) if self._pages else -1
        fresh = [entry for entry in page["records"] if seq(entry) > last]
        self.after = page["after"]
        if fresh and self._pages and len(self._pages[-1]) + len(fresh) <= PAGE:  # a session that grows turn by turn
            self._pages[-1] += fresh
        elif fresh:
            self._pages.append(fresh)
        while len(self._pages) > MOST:
            self._pages.pop(0)
            self.before = str(seq(self._pages[0][0]))

    def update(self, entries: Sequence[Entry]) -> None:
        """What is held of these, as it is now."""
        now = {seq(entry): entry for entry in entries}
        self._pages = [[now.get(seq(entry), entry) for entry in page] for page in self._pages]
