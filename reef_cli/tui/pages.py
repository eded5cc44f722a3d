"""Pages of the list of sessions as the person asked for it, and how they join the window.

A filtered page may be short, or empty, and still have a next one: the daemon looks at a bounded number of records for
each. So how far was looked is kept beside what was found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from daemon.core.client import Client
from daemon.core.orders import Order
from reef_cli.tui.window import PAGE, Row, Want, Window

#: Kept of a list whose end is followed, if that is more than two pages.
_SCREENS: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, or an order of all sessions."""

    query: str = ""
    order: Order = Order.ACTIVITY

    @property
    def counted(self) -> bool:
        """Whether the daemon tells how many there are."""
        return not self.query and self.order is Order.ACTIVITY


class Pages:
    """``shown`` is what the window answers; ``end``: up to where all that fits is in it; ``from_start``: its other end
    is wanted."""

    def __init__(self, client: Client, window: Window) -> None:
        self._client = client
        self._window = window
        self._reached = 0
        self.shown = Asked()
        self.end = 0
        self.from_start = False

    def told(self) -> str:
        """How many fit, as far as that is known, or what they are sorted by."""
        if self.shown.query:
            loaded = len(self._window.rows)
            return f"{loaded}{'' if loaded == self._window.total else '+'} fit"
        return "" if self.shown.counted else f"by {self.shown.order}"

    def nothing(self, key: Callable[[str], str]) -> str:
        """What stands where nothing fits; ``key`` tells what a person presses for an action."""
        if self.shown.query:
            return "looking further back …" if self._reached else f"no trace fits; {key('reset')} shows all of them"
        if self.shown.counted:
            return ""
        return f"no trace has a {self.shown.order}; {key('sort')} goes on, {key('reset')}: the last activity"

    def get(self, asked: Asked, **place: object) -> Mapping[str, Any]:
        """Blocking. Raises ReefError; UsageError for a wrong query."""
        order = None if asked.order is Order.ACTIVITY else asked.order
        page: Mapping[str, Any] = self._client.get("/reef/sessions", q=asked.query or None, sort=order, **place)
        return page

    def now(self, view: tuple[int, int]) -> list[Mapping[str, Any]]:
        """The sessions in view as they are now, where they stand in this list. Blocking. Raises ReefError."""
        rows = [row for n in range(view[0], view[1] + 1) if (row := self._window.row(n)) and not row.under]
        if not rows:
            return []
        found = self._client.get("/reef/sessions", ids=",".join(row.id for row in rows))["items"]
        places = {row.id: row.seq for row in rows}
        return [{**session, "seq": places[session["id"]]} for session in found]

    def newest(
        self,
        asked: Asked,
        told: Mapping[str, Any],
        rows: Sequence[Row],
        *,
        extra: int = 0,
        view: tuple[int, int] = (0, 0),
    ) -> None:
        """The newest page; ``extra`` lines in the list are no sessions. Of what is above ``view``, the rows that the
        person sees, some screens are kept: the rest comes again when one goes there."""
        if asked != self.shown:
            self._window.clear()
            self.shown, self.from_start = asked, False
        floor = int(told["next"] or 0)
        total = told["total"] + extra if asked.counted else None
        kept = self._window.rows[:1]
        most = max(2 * PAGE, _SCREENS * (view[1] - view[0] + 1))
        self._window.tail(rows, total, floor=floor, most=most)
        if self._window.rows[:1] != kept or not kept:
            self._reached = floor
        self.end = self._window.rows[-1].seq if self._window.rows else 0

    def later(self, rows: Sequence[Row]) -> None:
        """All there is behind the end."""
        first = self._window.rows[:1]
        self._window.after(rows, whole=True)
        self._kept(first)
        self.end = max(self.end, *(row.seq for row in rows)) if rows else self.end

    def _kept(self, first: Sequence[Row]) -> None:
        """How far was looked holds only for rows that are still there."""
        if self._window.rows[:1] != first:
            self._reached = 0

    def want(self, view: tuple[int, int]) -> Want | None:
        window = self._window
        if self.from_start:
            return Want("jump", 0)
        if not window.rows:
            return Want("before", self._reached) if self._reached else None
        want = window.want(*view)
        if want is not None and want.kind == "before" and not window.counted and 0 < self._reached < want.seq:
            return Want("before", self._reached)
        return want

    def edge(self, want: Want) -> object:
        """What must be the same when the page comes as it was when it was asked for."""
        rows = self._window.rows
        if want.kind == "jump" or not rows:
            return want.kind
        return rows[0].seq if want.kind == "before" else rows[-1].seq

    def join(self, want: Want, rows: Sequence[Row], told: Mapping[str, Any]) -> None:
        whole = told["next"] is None
        match want.kind:
            case "before":
                self._window.before(rows, whole=whole)
                self._reached = int(told["next"] or 0)
                self.end = max(self.end, *(row.seq for row in rows)) if rows else self.end
            case "after":
                first = self._window.rows[:1]
                self._window.after(rows, whole=whole)
                self._kept(first)
            case "jump":
                self._window.jump(rows, want.first, whole=whole)
                self._reached, self.from_start = 0, False
