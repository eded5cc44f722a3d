"""One trace, readable: what was asked, done and answered, what served it, what was said about it. Live.

Only a few pages of a session are held (`reef_cli.tui.paging`); the others come when the person gets there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from textual.message import Message
from textual.timer import Timer

from daemon.core.errors import NotFound
from reef_cli import conversation, pages
from reef_cli.tui import transcript
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.live import Calls
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.exchange import Changes, Raw, send_curl
from reef_cli.tui.screens.paged import Paged
from reef_cli.tui.screens.rated import RATING, Rated
from reef_cli.tui.screens.work import off_loop
from reef_cli.tui.transcript import Item
from reef_cli.tui.window import Row

_UPDATE_SECONDS: Final = 0.1
_OF_EXCHANGE: Final = frozenset({"changes", "raw", "curl"})


class Grew(Message):
    """More of a live answer has come. Posted once, however much it is, until that is taken."""


class Trace(Rated, Paged):
    place = Place.TRACE
    follow = True
    empty = "…"

    def __init__(self, desk: Desk, session: str) -> None:
        super().__init__(desk, session)
        self._calls = Calls(desk.client, lambda: self.post_message(Grew()))
        self._timer: Timer | None = None
        self._recorded: list[Item] = []
        self._items: list[Item] = []
        self._receipts: set[str] = set()
        self._unfolded = False  # all of them, except those that are toggled
        self._toggled: set[str] = set()
        self._drawn: dict[str, tuple[Item, int, bool, list[Row]]] = {}

    def on_unmount(self) -> None:
        self._calls.drop([live.call["receipt"] for live in self._calls.running])

    # -- what is shown ------------------------------------------------------------------------------

    async def load(self) -> None:
        await super().load()
        try:
            calls = (await off_loop(self.desk.client.get, "/reef/live"))["items"]
        except NotFound:  # a daemon from before
            return
        self._calls.now(call for call in calls if call["session"] == self.session)
        self._show()

    def changed(self) -> None:
        entries, held = self.held.entries, self.held
        assert held.session is not None
        self.session = held.session["id"]
        self._receipts = {entry["record"]["receipt"] for entry in entries}
        self._calls.drop(self._receipts)
        above = transcript.heading(held.session) if held.before is None else self._beyond("above", held.before)
        below = [] if held.after is None else [self._beyond("below", held.after)]
        waiting = self.desk.ratings.overlaid
        entries = [{**one, "reports": waiting(one["record"]["receipt"], one["reports"])} for one in entries]
        self._recorded = [above, *transcript.items(entries, self.desk.now()), *below]
        if below:
            self.list.follow = False
        self._show()

    def _beyond(self, where: Literal["above", "below"], cursor: str) -> Item:
        return transcript.beyond(where, cursor, self.desk.key("top" if where == "above" else "bottom"))

    def _show(self) -> None:
        live = [] if self.held.after else self._calls.running
        self._items = [*self._recorded, *(item for one in live for item in transcript.live(one.call, one.take()))]
        self.draw()

    def heard(self, events: Sequence[Event]) -> None:
        if not self.shown:
            return
        for event in events:
            if event.name == "live" and event.data["session"] == self.session:
                self._calls.begin(event.data)
                self._show()
        if any(self._about_this(event) for event in events):
            self.reload.ask()

    def _about_this(self, event: Event) -> bool:
        if event.name == "record":
            return bool(event.data["session"] == self.session)
        if event.name == "pin":
            return self.session in event.data["sessions"]
        return event.name == "report" and not self._receipts.isdisjoint(event.data["references"])

    def on_grew(self, message: Grew) -> None:
        if self._timer is None:
            self._timer = self.set_timer(_UPDATE_SECONDS, self._update_live)

    def _update_live(self) -> None:
        self._timer = None
        if self.shown:
            self._show()

    # -- drawing ------------------------------------------------------------------------------------

    def lines(self, width: int) -> Sequence[Row]:
        """Only what changed is drawn anew."""
        before, self._drawn = self._drawn, {}
        rows: list[Row] = []
        for item in self._items:
            if self._hidden(item):
                continue
            folded, known = self._folded(item), before.get(item.id)
            if known is None or known[:3] != (item, width, folded):
                known = (item, width, folded, _rows(item, width, folded=folded))
            self._drawn[item.id] = known
            rows += known[3]
        return rows

    def _folded(self, item: Item) -> bool:
        return item.folds and self._unfolded == (item.id in self._toggled)

    def _hidden(self, item: Item) -> bool:
        return bool(item.under) and self._unfolded == (item.under in self._toggled)

    @property
    def _item(self) -> Item | None:
        row = self.list.selected
        return row.data if row is not None and isinstance(row.data, Item) else None

    def copied(self, row: Row) -> str:
        item = self._item
        if item is None or item.record is None:
            return self.session if item is not None and item.id == "session" else super().copied(row)
        return str(item.record["receipt"])

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
                    self._toggled ^= {one.under} if self._hidden(one) else set()
                    self._toggled ^= {one.id} if self._folded(one) else set()
                    self.list.follow = False
                    self.draw()
                    return self._select(one, words, step)
            edge = [one.id for one in self._items if one.record is not None][-1 if step > 0 else 0]
            async with self.reading:
                if not await self.further(step):
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

    def document(self) -> Iterator[str]:
        return conversation.lines(pages.trace(self.desk.client, self.session), full=True)

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
            return f"no exchange is selected: {self.desk.key('down')} goes down to one"
        if id in RATING:
            if record is None:
                return f"no answer is selected: {self.desk.key('down')} goes down to one"
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
        self._toggled = set()
        self.list.follow = False
        self.draw(select=f"{item.id}:0" if item else None)

    def meant(self) -> Sequence[Mapping[str, Any]]:
        item = self._item
        return [item.record] if item is not None and item.record is not None else []

    def sessions(self) -> Sequence[Mapping[str, Any]]:
        return [self.held.session] if self.held.session else []

    def named(self) -> str:
        return f"the answer {self.meant()[0]['receipt']}"

    def redraw(self) -> None:
        if self.held.entries:
            self.changed()

    def do_changes(self) -> None:
        self.app.push_screen(Changes(self.desk, self.meant()[0]))

    def do_raw(self) -> None:
        self.app.push_screen(Raw(self.desk, self.meant()[0]))

    def do_curl(self) -> None:
        send_curl(self, self.meant()[0]["receipt"])


def _rows(item: Item, width: int, *, folded: bool) -> list[Row]:
    return [
        Row(f"{item.id}:{n}", (line.text,), line.style, data=item, spans=line.spans)
        for n, line in enumerate(transcript.lines(item, width, folded=folded))
    ]
