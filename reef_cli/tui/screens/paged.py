"""A screen that reads a session page by page: what is around the view is held, the rest comes when one gets there."""

import asyncio
from typing import Any, Final

from daemon.core.client import segment
from reef_cli.tui.desk import Desk
from reef_cli.tui.paging import PAGE, Held, seq
from reef_cli.tui.screens.reading import Reading
from reef_cli.tui.screens.work import Repeating, off_loop
from reef_cli.tui.widgets.rows import RowList

#: Screens around the view that are there already.
_AHEAD: Final = 2


class Paged(Reading):
    """Rows of the list carry items with the ``record`` they belong to."""

    def __init__(self, desk: Desk, session: str) -> None:
        super().__init__(desk)
        self.session = session
        self.held = Held()
        self.reading = asyncio.Lock()  # pages come one after the other
        self.fill = Repeating(self, self._fill)

    def changed(self) -> None:
        """Other records are held than before, or they have changed."""
        raise NotImplementedError

    async def load(self) -> None:
        async with self.reading:
            held = self.held
            if not held.entries:
                held.only(await self._page(limit=PAGE))
            elif held.after is None:  # its last record too: what follows an answer is told beside it
                await self._update()
                held.later(await self._page(after=seq(held.entries[-1]) - 1, limit=PAGE))
            else:
                await self._update()
            self.changed()

    async def _update(self) -> None:
        """What was said meanwhile about the answers in view."""
        first, last = self.list.view
        shown = [row.data for n in range(first, last + 1) if (row := self.list.window.row(n)) is not None]
        seqs = [item.record["seq"] for item in shown if item.record is not None]
        if seqs and min(seqs) < seq(self.held.entries[-1]):
            page = await self._page(after=min(seqs) - 1, limit=min(max(seqs) - min(seqs) + 1, PAGE))
            self.held.update(page["records"])

    async def _fill(self) -> None:
        """The pages around the view."""
        async with self.reading:
            first, last = self.list.view
            around = _AHEAD * (last - first + 1)
            if not (first < around and await self.further(-1)) and last + around >= self.list.window.total:
                await self.further(1)

    async def _page(self, **query: object) -> dict[str, Any]:
        page: dict[str, Any] = await off_loop(self.desk.client.get, f"/reef/traces/{segment(self.session)}", **query)
        return page

    async def further(self, step: int) -> bool:
        """One page more in that direction; False where there is none."""
        cursor = self.held.after if step > 0 else self.held.before
        if cursor is None:
            return False
        if step > 0:
            self.held.later(await self._page(after=cursor, limit=PAGE))
        else:
            self.held.earlier(await self._page(before=cursor, limit=PAGE))
        self.changed()
        return True

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        super().on_row_list_moved(message)
        self.fill.ask()

    # -- keys ---------------------------------------------------------------------------------------

    def do_top(self) -> None:
        self._jump(after="0")

    def do_bottom(self) -> None:
        self._jump()

    def do_follow(self) -> None:
        if self.list.follow or self.held.after is None:
            super().do_follow()
        else:
            self._jump()

    def _jump(self, **cursor: object) -> None:
        """To the session's beginning or end, also where that is not held."""
        there = self.held.before if cursor else self.held.after

        async def run() -> None:
            async with self.reading:
                if there is not None:
                    self.held.only(await self._page(**cursor, limit=PAGE))
                    self.changed()
            if cursor:
                self.list.to(0)
            else:
                self.list.to_end()

        Repeating(self, run).ask()
