"""One exchange, close up: what changed since the request before, and its bodies as they went over the wire."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from textual.events import Resize

from daemon.core.client import segment
from reef_cli import changes, exchanges, output
from reef_cli.exchanges import Side
from reef_cli.tui import rawtext
from reef_cli.tui.desk import Desk
from reef_cli.tui.drawing import Drawn
from reef_cli.tui.keys import Place
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.reading import Reading, plain
from reef_cli.tui.screens.work import Repeating, off_loop
from reef_cli.tui.widgets.rows import RowList
from reef_cli.tui.window import Row

#: Lines of a body that are made at once; screens below the view that are there already.
_CHUNK: Final = 500
_AHEAD: Final = 3
#: Lines that are held: a body of ten megabytes has fewer.
_MOST: Final = 300_000


class _Exchange(Reading):
    empty = "…"

    def __init__(self, desk: Desk, record: Mapping[str, Any]) -> None:
        super().__init__(desk)
        self.record = record

    def do_curl(self) -> None:
        send_curl(self, self.record["receipt"])


def send_curl(panel: Panel, receipt: str) -> None:
    """Copy the command that sends a request again."""

    async def run() -> None:
        panel.sent(await off_loop(exchanges.curl, panel.desk.client, receipt), f"{receipt} as a curl command")

    Repeating(panel, run).ask()


class Changes(_Exchange):
    """Messages that were added, or where the beginning is another: that is what breaks a prompt cache."""

    place = Place.CHANGES

    def __init__(self, desk: Desk, record: Mapping[str, Any]) -> None:
        super().__init__(desk, record)
        self._text = ""

    async def load(self) -> None:
        told = await off_loop(self.desk.client.get, f"/reef/records/{segment(self.record['receipt'])}/changes")
        self._text = "\n".join(changes.lines(told))
        self.draw()

    def lines(self, width: int) -> Sequence[Row]:
        return plain(self._text, width, marked=True)


class Raw(_Exchange):
    """A request, or its response, line by line as it is read on."""

    place = Place.RAW

    def __init__(self, desk: Desk, record: Mapping[str, Any]) -> None:
        super().__init__(desk, record)
        self._side: Side = "request"
        self._text: str | None = None
        self._rows: list[Row] = []
        self._rest: Iterator[Drawn] = iter(())
        self.fill = Repeating(self, self._fill)

    async def load(self) -> None:
        if self._text is not None:  # a body never changes
            return
        self._text = await off_loop(exchanges.text, self.desk.client, self.record["receipt"], self._side)
        self._begin()

    def _begin(self) -> None:
        """From the first line on, in the width that there is now."""
        if self._text is None or self.width <= 0:
            return
        of = f"{self._side} of {self.record['receipt']}, {output.size(len(self._text.encode()))}"
        first = of if self._text else f"{of}: nothing was kept"
        self._rows = [Row("0", (first,), "bold")]
        self._rest = rawtext.rows(self._text, self.width)
        self.list.cursor = "0"
        self.list.all(self._rows)
        self.fill.ask()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._begin)

    def lines(self, width: int) -> Sequence[Row]:
        return self._rows

    async def _fill(self) -> None:
        _, last = self.list.view
        while last + _AHEAD * 2 * self.list.half() >= len(self._rows) and await self._more():
            pass

    async def _more(self, count: int = _CHUNK) -> bool:
        """The next lines; False where there are none."""
        rest, begun = self._rest, len(self._rows)
        drawn = await off_loop(lambda: list(islice(rest, count)))
        if rest is not self._rest or not drawn:  # the width or the side changed meanwhile
            return False
        self._rows += [Row(str(begun + n), (one.text,), one.style, spans=one.spans) for n, one in enumerate(drawn)]
        if len(self._rows) > _MOST:
            self._rest = iter(())
            self._rows.append(
                Row("cut", (f"… cut here; all of it: {self.desk.key('pager')}, or {self.desk.key('editor')}",), "dim")
            )
        self.list.all(self._rows)
        return True

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        super().on_row_list_moved(message)
        self.fill.ask()

    async def seek(self, words: str, step: int) -> bool:
        while not await super().seek(words, step):
            if step < 0 or not await self._more(10 * _CHUNK):
                return False
        return True

    def document(self) -> Iterator[str]:
        return iter((self._text or "").split("\n"))

    # -- keys ---------------------------------------------------------------------------------------

    def do_side(self) -> None:
        self._side = "response" if self._side == "request" else "request"
        self._text = None
        self.list.hit = ""
        self.reload.ask()

    def do_bottom(self) -> None:
        async def run() -> None:
            while await self._more(10 * _CHUNK):
                pass
            self.list.to(len(self._rows) - 1)

        Repeating(self, run).ask()
