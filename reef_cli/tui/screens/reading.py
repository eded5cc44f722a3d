"""A screen that reads: its text as lines of the list's width, wrapped again when that changes; words found in it, and
all of it in the person's editor or pager."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from textual.app import SuspendNotSupported
from textual.events import Resize

from reef_cli.tui import outside
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.work import begin, off_loop
from reef_cli.tui.text import inert, wrapped
from reef_cli.tui.widgets.prompt import Prompt
from reef_cli.tui.window import Row

_DECORATION = re.compile("\x1b\\[\\d*m")


class Reading(Panel):
    titled = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.prompt = Prompt("words to find in it; Enter: find, Esc: cancel")
        self.below = (self.prompt,)

    def lines(self, width: int) -> Sequence[Row]:
        """What there is to read, in at most ``width`` columns."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        return self.list.scrollable_content_region.width - 2

    def draw(self, *, select: str | None = None) -> None:
        if self.width > 0:
            self.list.all(self.lines(self.width), select=select)
            self.foot.refresh()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.draw)

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is None and id in ("next_hit", "previous_hit") and not self.list.hit:
            return f"nothing is looked for yet: {self.desk.key('find')} finds"
        return why

    # -- finding ------------------------------------------------------------------------------------

    def do_find(self) -> None:
        self.prompt.open()

    def on_prompt_left(self) -> None:
        self.list.focus()
        self.list.hit = self.prompt.value.lower()
        self.list.refresh()
        self.foot.refresh()
        if self.list.hit:
            self._seek(1)

    def do_next_hit(self) -> None:
        self._seek(1)

    def do_previous_hit(self) -> None:
        self._seek(-1)

    def _seek(self, step: int) -> None:
        async def run() -> None:
            if not await self.seek(self.list.hit, step):
                self.say(f"not {'below' if step > 0 else 'above'}: {self.list.hit}")

        begin(self, run(), group="seek")

    async def seek(self, words: str, step: int) -> bool:
        """Go to the next line that has ``words``, in either direction; False where there is none."""
        rows = self.list.window.rows
        at = self.list.window.index(self.list.cursor) or 0
        for n in range(at + step, len(rows) if step > 0 else -1, step):
            if words in rows[n].cells[0].lower():
                self.list.to(n)
                return True
        return False

    # -- outside ------------------------------------------------------------------------------------

    def document(self) -> Iterator[str]:
        """All of it as inert lines; asked for off the loop. Raises ReefError."""
        return iter([row.cells[0] for row in self.list.window.rows])

    def do_editor(self) -> None:
        self._outside(outside.editor())

    def do_pager(self) -> None:
        self._outside(outside.pager())

    def _outside(self, command: str) -> None:
        async def run() -> None:
            lines = (_DECORATION.sub("", line) for line in self.document())
            file = outside.written(lines, f"{self.place.replace(' ', '-')}.md")
            try:
                path = await off_loop(file.__enter__)
                try:
                    outside.read(command, path, self.app.suspend())
                finally:
                    await off_loop(file.__exit__, None, None, None)
            except SuspendNotSupported:
                self.say(
                    f"this terminal cannot be handed to another program; {self.desk.key('help')} tells the commands"
                )
            finally:
                self.app.refresh(layout=True)

        begin(self, run(), group="outside")

    def copied(self, row: Row) -> str:
        return row.cells[0].strip()


def plain(text: str, width: int, *, marked: bool = False, name: str = "", data: object = None) -> list[Row]:
    """Text as rows; ``marked`` colours the lines of a diff, whose signs say the same. Their ids begin with ``name``."""
    styles = {"+": "added", "-": "removed", "@": "hunk"} if marked else {}
    rows: list[Row] = []
    for line in text.splitlines():
        style = styles.get(line[:1], "")
        parts = wrapped(line, width)
        rows += [Row(f"{name}{len(rows) + n}", (part,), style, data=data) for n, part in enumerate(parts)]
    return rows


def hanging(id: str, head: str, text: str, width: int, *, style: str = "", data: object = None) -> list[Row]:
    """``head``, and beside it ``text``, as many lines as it needs; ``text`` is their data where there is no other."""
    indent = min(len(head), width // 2)
    parts = wrapped(text, width - indent)
    return [
        Row(f"{id}:{n}", (f"{inert(head) if n == 0 else '':<{indent}}{part}",), style, data=data or text)
        for n, part in enumerate(parts)
    ]
