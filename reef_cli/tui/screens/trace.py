"""One trace, readable: what was asked, done and answered, what served it, what was said about it. Live."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType

from daemon.core.client import segment
from reef_cli.tui import transcript
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.panel import bindings, off_loop
from reef_cli.tui.screens.rated import RATING, Rated
from reef_cli.tui.screens.reading import Reading
from reef_cli.tui.transcript import Item
from reef_cli.tui.window import Row


class Trace(Rated, Reading):
    place = Place.TRACE
    follow = True
    empty = "…"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.TRACE)]

    def __init__(self, desk: Desk, session: str) -> None:
        super().__init__(desk)
        self._session = session
        self._trace: Mapping[str, Any] | None = None
        self._items: list[Item] = []
        self._receipts: set[str] = set()
        self._toggled: set[str] = set()

    async def load(self) -> None:
        trace = await off_loop(self.desk.client.get, f"/reef/traces/{segment(self._session)}")
        self._trace = trace
        self._receipts = {entry["record"]["receipt"] for entry in trace["records"]}
        self.redraw()

    def lines(self, width: int) -> Sequence[Row]:
        return transcript.rows(self._items, self._toggled, width)

    def heard(self, events: Sequence[Event]) -> None:
        if any(self._about_this(event) for event in events):
            self.reload.ask()

    def _about_this(self, event: Event) -> bool:
        if event.name == "record":
            return bool(event.data["session"] == self._session)
        return event.name == "report" and not self._receipts.isdisjoint(event.data["references"])

    @property
    def _item(self) -> Item | None:
        row = self.list.selected
        return row.data if row is not None and isinstance(row.data, Item) else None

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        item = self._item
        if why is None and id == "fold" and (item is None or not item.folds):
            return "there is nothing to unfold on this line"
        if why is None and id in RATING:
            record = None if item is None else item.record
            if record is None:
                return "no answer is selected: j goes down to one"
            if record["end"] != "ok":
                return f"this exchange has no answer to rate: it ended {record['end']}"
        return why

    # -- keys ---------------------------------------------------------------------------------------

    def do_fold(self) -> None:
        item = self._item
        assert item is not None  # `blocked` asks first
        self._toggled ^= {item.id}
        self.list.follow = False
        self.draw(select=f"{item.id}:0")

    def meant(self) -> Sequence[Mapping[str, Any]]:
        item = self._item
        return [item.record] if item is not None and item.record is not None else []

    def named(self) -> str:
        return f"the answer {self.meant()[0]['receipt']}"

    def redraw(self) -> None:
        if self._trace is None:
            return
        waiting = self.desk.ratings.overlaid
        entries = [
            {**entry, "reports": waiting(entry["record"]["receipt"], entry["reports"])}
            for entry in self._trace["records"]
        ]
        self._items = transcript.items({**self._trace, "records": entries}, self.desk.now())
        self.draw()
