"""One trace, readable: what was asked, done and answered, what served it, what was said about it. Live.

Only a few pages of a session are held (`reef_cli.tui.paging`); the others come when the person gets there.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.binding import BindingType

from daemon.core.client import segment
from reef_cli import conversation, exchanges, pages
from reef_cli.tui import transcript
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.paging import PAGE, Held, seq
from reef_cli.tui.screens.exchange import Changes, Raw
from reef_cli.tui.screens.panel import Repeating, bindings, off_loop
from reef_cli.tui.screens.rated import RATING, Rated
from reef_cli.tui.screens.reading import Reading
from reef_cli.tui.transcript import Item
from reef_cli.tui.widgets.rows import RowList
from reef_cli.tui.window import Row

#: Screens around the view that are there already.
_AHEAD: Final = 2
_OF_EXCHANGE: Final = frozenset({"changes", "raw", "curl"})


class Trace(Rated, Reading):
    place = Place.TRACE
    follow = True
    empty = "…"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.TRACE)]

    def __init__(self, desk: Desk, session: str) -> None:
        super().__init__(desk)
        self._session = session
        self._held = Held()
        self._reading = asyncio.Lock()  # pages come one after the other
        self._items: list[Item] = []
        self._receipts: set[str] = set()
        self._unfolded = False  # all of them, except those that are toggled
        self._toggled: set[str] = set()
        self._drawn: dict[str, tuple[Item, int, bool, list[Row]]] = {}
        self.fill = Repeating(self, self._fill)

    # -- what is held -------------------------------------------------------------------------------

    async def load(self) -> None:
        async with self._reading:
            held = self._held
            if not held.entries:
                held.only(await self._page(limit=PAGE))
            elif held.after is None:  # its last record too: what follows an answer is told beside it
                await self._update()
                held.later(await self._page(after=seq(held.entries[-1]) - 1, limit=PAGE))
            else:
                await self._update()
            self._changed()

    async def _update(self) -> None:
        """What was said meanwhile about the answers in view."""
        first, last = self.list.view
        shown = [row.data for n in range(first, last + 1) if (row := self.list.window.row(n)) is not None]
        seqs = [item.record["seq"] for item in shown if item.record is not None]
        if seqs and min(seqs) < seq(self._held.entries[-1]):
            page = await self._page(after=min(seqs) - 1, limit=min(max(seqs) - min(seqs) + 1, PAGE))
            self._held.update(page["records"])

    async def _fill(self) -> None:
        """The pages around the view."""
        async with self._reading:
            first, last = self.list.view
            around = _AHEAD * (last - first + 1)
            if self._held.before is not None and first < around:
                self._held.earlier(await self._page(before=self._held.before, limit=PAGE))
            elif self._held.after is not None and last + around >= self.list.window.total:
                self._held.later(await self._page(after=self._held.after, limit=PAGE))
            else:
                return
            self._changed()

    async def _page(self, **query: object) -> dict[str, Any]:
        page: dict[str, Any] = await off_loop(self.desk.client.get, f"/reef/traces/{segment(self._session)}", **query)
        return page

    def _changed(self) -> None:
        entries, session = self._held.entries, self._held.session
        assert session is not None
        self._receipts = {entry["record"]["receipt"] for entry in entries}
        above = transcript.heading(session) if self._held.before is None else transcript.ABOVE
        below = [] if self._held.after is None else [transcript.BELOW]
        waiting = self.desk.ratings.overlaid
        entries = [{**one, "reports": waiting(one["record"]["receipt"], one["reports"])} for one in entries]
        self._items = [above, *transcript.items(entries, self.desk.now()), *below]
        if self._held.after is not None:
            self.list.follow = False
        self.draw()

    def heard(self, events: Sequence[Event]) -> None:
        if any(self._about_this(event) for event in events):
            self.reload.ask()

    def _about_this(self, event: Event) -> bool:
        if event.name == "record":
            return bool(event.data["session"] == self._session)
        return event.name == "report" and not self._receipts.isdisjoint(event.data["references"])

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        super().on_row_list_moved(message)
        self.fill.ask()

    # -- drawing ------------------------------------------------------------------------------------

    def lines(self, width: int) -> Sequence[Row]:
        """Only what changed is drawn anew."""
        before, self._drawn = self._drawn, {}
        rows: list[Row] = []
        for item in self._items:
            folded, known = self._folded(item), before.get(item.id)
            if known is None or known[:3] != (item, width, folded):
                known = (item, width, folded, _rows(item, width, folded=folded))
            self._drawn[item.id] = known
            rows += known[3]
        return rows

    def _folded(self, item: Item) -> bool:
        return item.folds and (item.long and not self._unfolded) != (item.id in self._toggled)

    @property
    def _item(self) -> Item | None:
        row = self.list.selected
        return row.data if row is not None and isinstance(row.data, Item) else None

    def copied(self, row: Row) -> str:
        item = self._item
        return str(item.record["receipt"]) if item is not None and item.record is not None else super().copied(row)

    # -- finding, reading elsewhere -----------------------------------------------------------------

    async def seek(self, words: str, step: int) -> bool:
        """What is folded is unfolded where the words are in it; pages that are not held are read through."""
        item = self._item
        if item is None:
            return False
        at = next(n for n, one in enumerate(self._items) if one.id == item.id)
        if not self._folded(item) and self._select(item, words, step, beyond=self.list.cursor):
            return True
        while True:
            for one in self._items[at + 1 :] if step > 0 else self._items[:at][::-1]:
                if words in one.searched.lower():
                    self._toggled ^= {one.id} if self._folded(one) else set()
                    self.list.follow = False
                    self.draw()
                    return self._select(one, words, step)
            edge = [one.id for one in self._items if one.record is not None][-1 if step > 0 else 0]
            async with self._reading:
                if not await self._further(step):
                    return False
            at = next(n for n, one in enumerate(self._items) if one.id == edge)

    def _select(self, item: Item, words: str, step: int, *, beyond: str | None = None) -> bool:
        """The item's first line (going up: last) that has the words; ``beyond`` is the selected one of its lines."""
        rows = self._drawn[item.id][3]
        hits = [n for n, row in enumerate(rows) if words in row.cells[0].lower()]
        if beyond is not None:
            at = next(n for n, row in enumerate(rows) if row.id == beyond)
            hits = [n for n in hits if (n > at if step > 0 else n < at)]
            if not hits:
                return False
        index = self.list.window.index(rows[hits[0 if step > 0 else -1] if hits else 0].id)
        self.list.to(index or 0)
        return True

    async def _further(self, step: int) -> bool:
        """One page more in that direction."""
        cursor = self._held.after if step > 0 else self._held.before
        if cursor is None:
            return False
        self.say("looking further …")
        if step > 0:
            self._held.later(await self._page(after=cursor, limit=PAGE))
        else:
            self._held.earlier(await self._page(before=cursor, limit=PAGE))
        self._changed()
        return True

    def document(self) -> Iterator[str]:
        return conversation.lines(pages.trace(self.desk.client, self._session), full=True)

    # -- keys ---------------------------------------------------------------------------------------

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        item = self._item
        record = None if item is None else item.record
        if why is not None:
            return why
        if id == "fold" and (item is None or not item.folds):
            return "there is nothing to unfold on this line"
        if id in _OF_EXCHANGE and record is None:
            return "no exchange is selected: j goes down to one"
        if id in RATING:
            if record is None:
                return "no answer is selected: j goes down to one"
            if record["end"] != "ok":
                return f"this exchange has no answer to rate: it ended {record['end']}"
        return None

    def do_fold(self) -> None:
        item = self._item
        assert item is not None  # `blocked` asks first
        self._toggled ^= {item.id}
        self.list.follow = False
        self.draw(select=f"{item.id}:0")

    def do_all(self) -> None:
        item = self._item
        self._unfolded = any(self._folded(one) for one in self._items)
        self._toggled = set() if self._unfolded else {one.id for one in self._items if one.folds and not one.long}
        self.list.follow = False
        self.draw(select=f"{item.id}:0" if item else None)

    def do_top(self) -> None:
        self._jump(after="0")

    def do_bottom(self) -> None:
        self._jump()

    def do_follow(self) -> None:
        if self.list.follow or self._held.after is None:
            super().do_follow()
        else:
            self._jump()

    def _jump(self, **cursor: object) -> None:
        """To the session's beginning or end, also where that is not held."""
        there = self._held.before if cursor else self._held.after

        async def run() -> None:
            async with self._reading:
                if there is not None:
                    self._held.only(await self._page(**cursor, limit=PAGE))
                    self._changed()
            if cursor:
                self.list.to(0)
            else:
                self.list.to_end()

        Repeating(self, run).ask()

    def meant(self) -> Sequence[Mapping[str, Any]]:
        item = self._item
        return [item.record] if item is not None and item.record is not None else []

    def named(self) -> str:
        return f"the answer {self.meant()[0]['receipt']}"

    def redraw(self) -> None:
        if self._held.entries:
            self._changed()

    def do_changes(self) -> None:
        self.app.push_screen(Changes(self.desk, self.meant()[0]))

    def do_raw(self) -> None:
        self.app.push_screen(Raw(self.desk, self.meant()[0]))

    def do_curl(self) -> None:
        receipt, client = self.meant()[0]["receipt"], self.desk.client

        async def run() -> None:
            self.sent(await off_loop(exchanges.curl, client, receipt), f"{receipt} as a curl command")

        Repeating(self, run).ask()


def _rows(item: Item, width: int, *, folded: bool) -> list[Row]:
    return [
        Row(f"{item.id}:{n}", (line.text,), line.style, data=item, spans=line.spans)
        for n, line in enumerate(transcript.lines(item, width, folded=folded))
    ]
