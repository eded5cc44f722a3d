"""The list of traces: sessions by their last activity, the newest at the end, as many as there are; or those that a
query finds, or sorted by what they took.

Only a few pages are held. While the person reads further up the list stands still: what happens meanwhile is counted,
and `f` or the end goes there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from daemon.core.errors import ReefError, Unreachable
from daemon.core.orders import Order
from reef_cli.tui.beside import Beside
from reef_cli.tui.keys import Place
from reef_cli.tui.listed import COLUMNS, folded, session_row, together, typed
from reef_cli.tui.messages import Event
from reef_cli.tui.pages import Asked, Pages
from reef_cli.tui.screens.rated import PINNING, RATING, Rated
from reef_cli.tui.screens.work import Repeating, begin, off_loop
from reef_cli.tui.widgets.filter import Filter
from reef_cli.tui.widgets.rows import RowList
from reef_cli.tui.window import PAGE, Row

_NEEDS_ROW = {"open", "mark", "range", "expand", "collapse", *RATING, PINNING}


class Traces(Rated):
    place = Place.TRACES
    columns = COLUMNS
    follow = True
    empty = (
        "nothing yet: what an agent asks from now on stands here. In another terminal, one of:\n"
        "  reef harness install --adapter pi   a coding agent of its own, and how to start it\n"
        '  eval "$(reef env)"                  then your own agent, in that shell\n'
        "  reef demo                           all that Reef does, in some minutes"
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: set[str] = set()
        self.asked = Asked()  # what is wanted
        self.pages = Pages(self.desk.client, self.list.window)
        self.fill = Repeating(self, self._fill)
        self.filter = Filter("words, or agent:pi status:error since:2d … ↑ earlier   Enter keeps   Esc all")
        self.above = (self.filter,)
        self.beside = Beside(self.desk)

    # -- loading ------------------------------------------------------------------------------------

    async def load(self) -> None:
        asked, growing, window = self.asked, self.list.grows, self.list.window
        away = window.end < window.total or not asked.query
        try:
            if asked != self.pages.shown or not window.rows or (growing and away):
                await self._load_newest(asked)
            else:
                await self._load_later(growing)
        except Unreachable:
            raise
        except ReefError as error:
            if asked == self.asked:  # the last good result stays
                self.asked = self.pages.shown
                self.failed(error)
        self.foot.refresh()

    async def _load_newest(self, asked: Asked) -> None:
        told = await off_loop(self.pages.get, asked, limit=PAGE)
        await self._unfold_again(told["items"])
        if asked != self.asked:
            return  # it was typed on: the last one wins
        if changed := asked != self.pages.shown:
            self.list.follow = True
            self.say("")
        if self.list.grows or not self.list.window.rows:
            rows = self._rows(reversed(told["items"]))
            extra = sum(len(lines) for lines in self.beside.lines.values())
            self.list.change(lambda _: self.pages.newest(asked, told, rows, extra=extra, view=self.list.view))
            self._count(set())
        if changed or not self.list.window.rows:
            self.daemon_changed()
        self.fill.ask()

    async def _load_later(self, growing: bool) -> None:
        """What is in view as it is now, and, where it is not counted as it comes, what is behind the end."""
        sessions = await off_loop(self.pages.now, self.list.view)
        self.list.change(lambda window: window.update([self._row(session) for session in sessions]))
        for id in await self._unfold_again(sessions):
            self._refold(id)
        shown = self.pages.shown
        if shown.counted:
            return
        told = await off_loop(self.pages.get, shown, after=self.pages.end, limit=PAGE)
        if shown != self.asked:
            return
        if growing:
            await self._unfold_again(told["items"])
            rows = self._rows(told["items"])
            self.list.change(lambda _: self.pages.later(rows))
        self._count({session["id"] for session in told["items"]} if not growing else set())
        if told["next"] is not None and (growing or not told["items"]):  # there is more to look at
            self.pages.end = int(told["next"])
            self.reload.ask()

    async def _fill(self) -> None:
        """Fetch what the view lacks, page by page."""
        while (want := self.pages.want(self.list.view)) is not None:
            place = {"before" if want.kind == "before" else "after": want.seq}
            asked, edge = self.asked, self.pages.edge(want)
            told = await off_loop(self.pages.get, self.pages.shown, limit=PAGE, **place)
            if asked != self.asked or edge != self.pages.edge(want):
                continue
            items = reversed(told["items"]) if want.kind == "before" else told["items"]
            rows = self._rows(items)
            self.list.change(lambda _, want=want, rows=rows, told=told: self.pages.join(want, rows, told))  # type: ignore[misc]
            if want.kind == "jump" and not self.pages.shown.counted:
                self.list.to(0)
            if want.kind == "after" and told["next"] is None:
                self._count(set())
            self._show_state()
            if not self.list.window.rows:  # what is said instead: whether there is more to look at
                self.daemon_changed()

    def _rows(self, sessions: Any) -> list[Row]:
        return together((self._row(session) for session in sessions), self.beside.lines)

    def _row(self, session: Mapping[str, Any]) -> Row:
        pending = self.desk.waits(session)
        return session_row(session, self.desk.now(), pending, unfolded=session["id"] in self.beside.lines)

    def heard(self, events: Sequence[Event]) -> None:
        records = {str(event.data["session"]) for event in events if event.name == "record"}
        reported = any(event.name in ("report", "pin") for event in events)
        standing = not self.list.grows and bool(self.list.window.rows)
        if standing and self.pages.shown.counted:
            self._count(self.waiting | records)
        elif records:
            self.reload.ask()
        if reported:
            self.beside.doubt()
            self.reload.ask()

    def _count(self, waiting: set[str]) -> None:
        self.waiting = waiting
        self._show_state()

    def _show_state(self) -> None:
        """What is marked, how the list is filtered and sorted, and what waits at its end."""
        marked = f"{len(self.list.marks)} marked" if self.list.marks else ""
        new = f"↓ {len(self.waiting)} new ({self.desk.key('follow')})" if self.waiting else ""
        self.said.show(right=" · ".join(filter(None, (marked, self.pages.told(), new))))

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        super().on_row_list_moved(message)
        window = self.list.window
        if self.list.grows and window.rows and (self.waiting or window.end < window.total):
            self.reload.ask()
        else:
            self.fill.ask()

    def nothing(self) -> str:
        said = super().nothing()
        if said != self.empty:
            return said
        return self.pages.nothing(self.desk.key) or self.desk.unrecorded or said

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is not None:
            return why
        row = self.list.selected
        if id in _NEEDS_ROW and row is None:
            return "no trace is selected"
        if id == "range" and not self.list.marks:
            return f"nothing is marked: {self.desk.key('mark')} marks the first one"
        if id == "sort" and self.pages.shown.query:
            return f"what a filter finds is in the order of activity; {self.desk.key('reset')} shows all"
        if id == "expand" and row is not None and (row.under or not folded(row.data)):
            return "nothing is folded here"
        if id == "collapse" and row is not None and (row.under or row.id) not in self.beside.lines:
            return "nothing is unfolded here"
        if id == "reset" and not self.list.marks and self.asked == Asked() and not self.filter.value:
            return "all of them are shown, and none is marked"
        return None

    # -- keys ---------------------------------------------------------------------------------------

    def do_open(self) -> None:
        row = self.list.selected
        assert row is not None  # `blocked` asks first
        from reef_cli.tui.screens.trace import Trace  # not at import: the list is painted without it

        self.app.push_screen(Trace(self.desk, row.under or row.id))

    def do_top(self) -> None:
        self.pages.from_start = not self.list.window.counted and self.list.window.base > 0
        super().do_top()
        self.fill.ask()

    def do_query(self) -> None:
        self.filter.open()

    def on_filter_typed(self, message: Filter.Typed) -> None:
        query = typed(self.filter.value)
        if query != self.asked.query:
            self.asked = Asked(query, Order.ACTIVITY if query else self.asked.order)
            self.reload.ask()

    def on_filter_left(self, message: Filter.Left) -> None:
        self.list.focus()

    def do_reset(self) -> None:
        if self.list.marks:
            self.list.unmark()
            self._show_state()
        elif self.asked.query or self.filter.value:  # the daemon may have refused what stands there
            self.filter.drop()
        else:
            self._sort(Order.ACTIVITY)

    def do_sort(self) -> None:
        orders = list(Order)
        self._sort(orders[(orders.index(self.asked.order) + 1) % len(orders)])

    def _sort(self, order: Order) -> None:
        self.asked = Asked("", order)
        self.reload.ask()

    def do_mark(self) -> None:
        self.list.mark()
        self._show_state()

    def do_range(self) -> None:
        if not self.list.mark_range():
            self.say("the last mark is too far away: at most what is loaded is marked at once")
        self._show_state()

    # -- what is folded -----------------------------------------------------------------------------

    def do_expand(self) -> None:
        row = self.list.selected
        assert row is not None
        begin(self, self._expand(row))

    async def _expand(self, row: Row) -> None:
        self.beside.unfold(row, await off_loop(self.beside.fetch, row))
        self.list.follow = False
        self._refold(row.id)
        self.list.reveal(row.id, len(self.beside.lines.get(row.id, [])))

    async def _unfold_again(self, sessions: Sequence[Mapping[str, Any]]) -> list[str]:
        """What is unfolded of these, where there may be more of it now; of which it was."""
        stale = [self._row(session) for session in sessions if self.beside.stale(session)]
        for row in stale:
            self.beside.unfold(row, await off_loop(self.beside.fetch, row))
        return [row.id for row in stale]

    def do_collapse(self) -> None:
        row = self.list.selected
        assert row is not None
        id = row.under or row.id
        self.beside.fold(id)
        self.list.cursor, self.list.follow = id, False
        self._refold(id)

    def _refold(self, id: str) -> None:
        index = self.list.window.index(id)
        row = None if index is None else self.list.window.row(index)
        if row is None:
            return
        self.list.change(lambda window: window.unfold(self._row(row.data), self.beside.lines.get(id, [])))
        self.foot.refresh()

    # -- feedback -----------------------------------------------------------------------------------

    def meant(self) -> Sequence[Mapping[str, Any]]:
        """What is marked, else what is selected."""
        if self.list.marks:
            return [row.data for row in self.list.marks.values()]
        row = self.list.selected
        return [row.data] if row is not None else []

    def sessions(self) -> Sequence[Mapping[str, Any]]:
        """The same; of what is unfolded, the sessions that it is of."""
        rows = list(self.list.marks.values()) or [row for row in [self.list.selected] if row is not None]
        return list({id: data for row in rows for id, data in self._session_of(row)}.values())

    def _session_of(self, row: Row) -> Iterator[tuple[str, Mapping[str, Any]]]:
        index = self.list.window.index(row.under or row.id)
        found = row if index is None else self.list.window.row(index)
        if found is not None and "receipt" not in found.data:
            yield found.id, found.data

    def named(self) -> str:
        if len(self.list.marks) > 1:
            return f"the last answers of {len(self.list.marks)} traces"
        row = next(iter(self.list.marks.values()), self.list.selected)
        return f"the last answer of: {row.cells[-1] if row else ''}"

    def redraw(self) -> None:
        rows = [self._row(row.data) for row in self.list.window.rows if not row.under]
        self.beside.draw(rows)
        self.list.change(lambda window: window.update(together(rows, self.beside.lines)))
