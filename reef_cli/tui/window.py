"""Rows as a list widget sees them, and the window of loaded ones over a list that stays in the daemon.

A row is known by its id, never by its index. `Window` keeps a bounded run of neighbouring rows, the oldest first, whose
place in the whole (``base`` of ``total``) is exact at both ends and an estimate after a jump to the middle: pages are
asked for by cursor, so that any of them costs the same. Where the daemon does not count a list (a filtered or sorted
one), one row stands for what is not loaded yet at either end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

PAGE: Final = 100
#: Pages kept; the widget shows one screen, the rest is what was just left.
MOST: Final = 6 * PAGE


class Span(NamedTuple):
    """Columns ``start`` to ``end`` of a row's line in another style."""

    start: int
    end: int
    style: str


@dataclass(frozen=True, slots=True)
class Row:
    """``cells`` are inert texts, a column each; ``style`` is that of all of them, in words of `reef_cli.tui.themes`,
    and ``spans`` have others on top of it, asked for when the row is drawn. ``seq``: its place in the daemon's list,
    where that has cursors."""

    id: str
    cells: tuple[str, ...]
    style: str = ""
    seq: int = 0
    data: Any = field(default=None, compare=False)
    under: str = ""  # the id of the row that it is unfolded from
    spans: Sequence[Span] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Want:
    """A page to ask for: rows ``before`` or ``after`` the place ``seq``; ``first`` is where a jump should land."""

    kind: Literal["before", "after", "jump"]
    seq: int
    first: int = 0


class Window:
    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self.rows: list[Row] = []
        self.base = 0
        self.total = 0
        self.counted = True
        self._index: dict[str, int] = {}
        if rows:
            self.all(rows)

    @property
    def end(self) -> int:
        return self.base + len(self.rows)

    def row(self, index: int) -> Row | None:
        place = index - self.base
        return self.rows[place] if 0 <= place < len(self.rows) else None

    def index(self, id: str | None) -> int | None:
        place = None if id is None else self._index.get(id)
        return None if place is None else self.base + place

    def all(self, rows: Sequence[Row]) -> None:
        """Show exactly these."""
        self._set(list(rows), 0, len(rows))

    def tail(self, fresh: Sequence[Row], total: int | None, *, floor: int = 0, most: int = MOST) -> None:
        """The newest page, the oldest first. What is loaded stays where the page joins it, up to ``most`` rows in all.
        ``total`` None: nobody has counted, and ``fresh`` is all there is from the place ``floor`` on."""
        ids = {row.id for row in fresh}
        reach = floor if total is None else fresh[0].seq if fresh else 0
        joined = bool(self.rows) and self.end >= self.total and 0 < reach <= self.rows[-1].seq
        kept = [row for row in self.rows if row.id not in ids and row.seq < reach] if joined else []
        rows = [*kept, *fresh][-most:]
        self.counted = total is not None
        if total is None:
            more = self.base > 0 or len(kept) + len(fresh) > most if kept else floor > 0
            total = len(rows) + more
        self._set(rows, max(total - len(rows), 0), max(total, len(rows)))

    def clear(self) -> None:
        self._set([], 0, 0)

    def before(self, older: Sequence[Row], *, whole: bool) -> None:
        """A page of older rows, the oldest first; ``whole`` when nothing is older than that."""
        rows = [row for row in older if row.id not in self._index] + self.rows
        base = 0 if whole else max(self.base - len(rows) + len(self.rows), 1)
        total = base + len(rows) + self.total - self.end
        self._set(rows[:MOST], base, total)

    def after(self, newer: Sequence[Row], *, whole: bool) -> None:
        """A page of newer rows, the oldest first; ``whole`` when nothing is newer than that."""
        ids = {row.id for row in newer}
        kept = [row for row in self.rows if row.id not in ids]
        base = self.base + len(self.rows) - len(kept)
        rows = [*kept, *newer]
        end = base + len(rows)
        cut = max(len(rows) - MOST, 0)
        self._set(rows[cut:], base + cut, end if whole else max(self.total, end + 1))

    def jump(self, rows: Sequence[Row], first: int, *, whole: bool) -> None:
        """A page from anywhere; ``first`` is the index it is taken to begin at."""
        if not self.counted:
            first, self.total = 0, len(rows) + (not whole)
        base = max(self.total - len(rows), 0) if whole else first
        self._set(list(rows), base, max(self.total, base + len(rows)))

    def unfold(self, row: Row, rows: Sequence[Row]) -> None:
        """Show ``rows`` under that row and no others; with none it is folded again."""
        self.update([row])
        gone = [one for one in self.rows if one.under == row.id]
        shown = [one for one in self.rows if one.under != row.id]
        place = next(n for n, one in enumerate(shown) if one.id == row.id)
        shown[place + 1 : place + 1] = rows
        self._set(shown, self.base, self.total + len(rows) - len(gone))

    def update(self, rows: Sequence[Row]) -> None:
        """New content of rows that are loaded and have not moved."""
        for row in rows:
            place = self._index.get(row.id)
            if place is not None and self.rows[place].seq == row.seq:
                self.rows[place] = row

    def want(self, first: int, last: int) -> Want | None:
        """What to ask for so that rows ``first`` to ``last`` (and a screen around them) are there; None: nothing."""
        if not self.rows or (self.base == 0 and self.end >= self.total):
            return None
        margin = last - first + 1
        if self.counted and (last < self.base - PAGE or first > self.end + PAGE):
            newest = max(self.rows[-1].seq * self.total // max(self.end, 1), 1)
            first = max(min(first, self.total - 1), 0)
            return Want("jump", newest * first // self.total, first)
        if self.base > 0 and first - margin < self.base:
            return Want("before", self.rows[0].seq)
        if self.end < self.total and last + margin >= self.end:
            return Want("after", self.rows[-1].seq)
        return None

    def _set(self, rows: list[Row], base: int, total: int) -> None:
        self.rows, self.base, self.total = rows, base, total
        self._index = {row.id: place for place, row in enumerate(rows)}
