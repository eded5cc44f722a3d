"""Reading in front of a screen: every key and its command; what a command of `reef` said."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import Static

from reef_cli.tui.keys import Key, Place, at
from reef_cli.tui.screens.dialogs import Once
from reef_cli.tui.text import fit, inert, wrapped
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import Row

_Answer = TypeVar("_Answer")

_KEY_WIDTH, _WIDE = 12, 64
#: Columns of the terminal that are not the lines': the frame, its padding, the scroll bar, what stands left of a row.
_AROUND = 7


class Pages(Once[_Answer]):
    """Lines of the terminal's width, wrapped again when that changes; nothing is cut.

    They are made before the first paint, which has them at once.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", show=False),
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("ctrl+d,pagedown,space", "move(10)", show=False),
        Binding("ctrl+u,pageup", "move(-10)", show=False),
        Binding("g,home", "move(-1000000)", show=False),
        Binding("G,end", "move(1000000)", show=False),
    ]
    AUTO_FOCUS = "RowList"
    foot: ClassVar[str] = "Esc: back"

    def __init__(self, title: str) -> None:
        super().__init__(classes="dialog full")
        self._title = inert(title)
        self.list = RowList((Column(""),))

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self._title, markup=False)
            yield self.list
            yield Static(self.foot, markup=False)

    def rows(self, width: int) -> Sequence[Row]:
        raise NotImplementedError

    def draw(self) -> None:
        if self.is_attached:
            self.list.all(self.rows(max(self.app.size.width - _AROUND, 1)))

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self, event: Resize) -> None:
        self.draw()

    def action_move(self, step: int) -> None:
        self.list.to((self.list.window.index(self.list.cursor) or 0) + step)

    def action_close(self) -> None:
        self.dismiss(None)


class Help(Pages[None]):
    """The table of keys for where the person is, with the command that does the same; why a key cannot act now."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,f1", "close", show=False)]

    def __init__(self, place: Place, table: Sequence[Key], blocked: Callable[[str], str | None]) -> None:
        super().__init__(f"Keys in {place}, and the command that does the same")
        self._keys = at(place, table)
        self._blocked = blocked

    def rows(self, width: int) -> Sequence[Row]:
        texts = max(len(key.text) for key in self._keys)
        twins = max(len(twin) for key in self._keys for twin in key.twins)
        column = min(width - twins, _KEY_WIDTH + texts + 2)  # in a wide terminal a command stands close to its key
        found = []
        for key in self._keys:
            why = self._blocked(key.id)
            lines = _explained(key, width, column) + (_below(f"not now: {inert(why)}", width) if why else [])
            found += [Row(f"{key.id}/{n}", (line,), "dim" if why else "") for n, line in enumerate(lines)]
        return found


def _explained(key: Key, width: int, column: int) -> list[str]:
    """A key's lines: its commands stand beside what it does, from ``column`` on, or below it where that is too
    narrow."""
    beside = width >= _WIDE and key.twin != ""
    words = wrapped(key.text, (column - 1 if beside else width) - _KEY_WIDTH)
    lines = [f"{fit(name, _KEY_WIDTH - 1)} {word}" for name, word in zip_longest([key.shown], words, fillvalue="")]
    if beside:
        pairs = zip_longest(lines, key.twins, fillvalue="")
        return [fit(line, column) + twin if twin else line for line, twin in pairs]
    return [*lines, *(line for twin in key.twins for line in _below(twin, width))]


def _below(text: str, width: int) -> list[str]:
    return [" " * _KEY_WIDTH + line for line in wrapped(text, width - _KEY_WIDTH)]
