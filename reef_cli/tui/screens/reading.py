"""A screen that reads: its text as lines of the list's width, wrapped again when that changes."""

from collections.abc import Sequence

from textual.events import Resize

from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.text import inert, wrapped
from reef_cli.tui.window import Row


class Reading(Panel):
    titled = False

    def lines(self, width: int) -> Sequence[Row]:
        """What there is to read, in at most ``width`` columns."""
        raise NotImplementedError

    def draw(self, *, select: str | None = None) -> None:
        width = self.list.scrollable_content_region.width - 2
        if width > 0:
            self.list.all(self.lines(width), select=select)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.draw)


def plain(text: str, width: int, *, marked: bool = False) -> list[Row]:
    """Text as rows; ``marked`` colours the lines of a diff, whose signs say the same."""
    styles = {"+": "added", "-": "removed", "@": "hunk"} if marked else {}
    rows: list[Row] = []
    for line in text.splitlines():
        rows += [
            Row(str(len(rows) + n), (part,), styles.get(line[:1], "")) for n, part in enumerate(wrapped(line, width))
        ]
    return rows


def hanging(id: str, head: str, text: str, width: int, *, style: str = "") -> list[Row]:
    """``head``, and beside it ``text``, as many lines as it needs."""
    indent = min(len(head), width // 2)
    parts = wrapped(text, width - indent)
    return [
        Row(f"{id}:{n}", (f"{inert(head) if n == 0 else '':<{indent}}{part}",), style) for n, part in enumerate(parts)
    ]
