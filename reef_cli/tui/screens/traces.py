"""The list of traces: sessions by their last activity, the newest at the end, as many as there are.

Only a few pages are held. While the person reads further up the list stands still: what happens meanwhile is counted,
and `f` or the end goes there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType

from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.dialogs import Note
from reef_cli.tui.screens.panel import Panel, Repeating, bindings, off_loop
from reef_cli.tui.screens.trace import Trace
from reef_cli.tui.text import inert, moment, number, one_line, rating
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import PAGE, Row, Want

_NEEDS_ROW = {"open", "good", "bad", "clear", "note"}


class Traces(Panel):
    place = Place.TRACES
    columns = (
        Column("when", 8),
        Column("agent", 11, least=70),
        Column("turns", 5, right=True),
        Column("tokens", 6, least=50, right=True),
        Column("rating", 6),
        Column("scenario", 14, least=110),
        Column("trace"),
    )
    follow = True
    empty = 'nothing yet: eval "$(reef env)", then an agent in that shell; or: reef demo'
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.TRACES)]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: set[str] = set()
        self.fill = Repeating(self, self._fill)

    async def load(self) -> None:
        if self.list.follow or not self.list.window.rows:
            told = await self._page(limit=PAGE)
            rows = self._rows(reversed(told["items"]))
            if self.list.follow or not self.list.window.rows:
                self.list.change(lambda window: window.tail(rows, told["total"]))
                self._count(set())
        else:  # it stands still: only what was said about the rows in view
            first, last = self.list.view
            row = next((found for n in range(last, first - 1, -1) if (found := self.list.window.row(n))), None)
            if row is not None:
                told = await self._page(before=row.seq + 1, limit=last - first + 1)
                rows = self._rows(told["items"])
                self.list.change(lambda window: window.update(rows))
        self.foot.refresh()

    async def _fill(self) -> None:
        """Fetch what the view lacks, page by page."""
        while (want := self.list.window.want(*self.list.view)) is not None:
            if want.kind == "before":
                told = await self._page(before=want.seq, limit=PAGE)
                rows = self._rows(reversed(told["items"]))
            else:
                told = await self._page(after=want.seq, limit=PAGE)
                rows = self._rows(told["items"])
            self._join(want, rows, whole=told["next"] is None)

    def _join(self, want: Want, rows: list[Row], *, whole: bool) -> None:
        window = self.list.window
        match want.kind:
            case "before" if window.rows and window.rows[0].seq == want.seq:
                self.list.change(lambda window: window.before(rows, whole=whole))
            case "after" if window.rows and window.rows[-1].seq == want.seq:
                self.list.change(lambda window: window.after(rows, whole=whole))
                if whole:
                    self._count(set())
            case "jump":
                self.list.change(lambda window: window.jump(rows, want.first, whole=whole))

    async def _page(self, **query: object) -> dict[str, Any]:
        told: dict[str, Any] = await off_loop(self.desk.client.get, "/reef/sessions", **query)
        return told

    def _rows(self, sessions: Any) -> list[Row]:
        return [self._row(session) for session in sessions]

    def _row(self, session: Mapping[str, Any]) -> Row:
        score = session["score"]
        cells = (
            moment(session["updated_ns"], self.desk.now()),
            inert(session["agent"] or "-"),
            number(session["turns"]),
            number(session["prompt_tokens"] + session["completion_tokens"]),
            rating(score) or ("note" if session["reports"] else ""),
            inert(session["scenario"]),
            one_line(session["title"] or "untitled"),
        )
        style = "good" if score == 1 else "bad" if score == 0 else ""
        return Row(session["id"], cells, style, session["seq"], session)

    def heard(self, events: Sequence[Event]) -> None:
        records = {str(event.data["session"]) for event in events if event.name == "record"}
        reported = any(event.name == "report" for event in events)
        if self.list.follow or not self.list.window.rows:
            if records or reported:
                self.reload.ask()
            return
        self._count(self.waiting | records)
        if reported:
            self.reload.ask()

    def _count(self, waiting: set[str]) -> None:
        self.waiting = waiting
        self.said.show(right=f"↓ {len(waiting)} new (f)" if waiting else "")

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        super().on_row_list_moved(message)
        window = self.list.window
        if self.list.follow and window.rows and (self.waiting or window.end < window.total):
            self.reload.ask()
        else:
            self.fill.ask()

    def nothing(self) -> str:
        said = super().nothing()
        return self.desk.unrecorded if said == self.empty and self.desk.unrecorded else said

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is None and id in _NEEDS_ROW and self.list.selected is None:
            return "no trace is selected"
        return why

    # -- keys ---------------------------------------------------------------------------------------

    def _selected(self) -> str:
        row = self.list.selected
        assert row is not None  # `blocked` asks first
        return row.id

    def do_open(self) -> None:
        self.app.push_screen(Trace(self.desk, self._selected()))

    def do_good(self) -> None:
        self._rate(1.0)

    def do_bad(self) -> None:
        self._rate(0.0)

    def _rate(self, score: float) -> None:
        session, ratings = self._selected(), self.desk.ratings
        self.act(lambda: ratings.rate(ratings.last_answer(session), score))

    def do_clear(self) -> None:
        session, ratings = self._selected(), self.desk.ratings
        self.act(lambda: ratings.clear(ratings.last_answer(session)))

    def do_note(self) -> None:
        session, ratings = self._selected(), self.desk.ratings

        def send(text: str | None) -> None:
            if text:
                self.act(lambda: ratings.note(ratings.last_answer(session), text))

        row = self.list.selected
        self.app.push_screen(Note(f"the last answer of: {row.cells[-1] if row else session}"), send)

    def do_undo(self) -> None:
        self.act(self.desk.ratings.undo)
