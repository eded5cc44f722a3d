"""What stands before a screen: every key, a note's text box, a yes to what cannot be taken back at once."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from reef_cli.tui.keys import Key, Place, at
from reef_cli.tui.text import fit, inert, wrapped
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import Row


class Note(ModalScreen[str | None]):
    """One line of text; Enter sends it, Esc does not. Every letter is a letter here."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", show=False)]

    def __init__(self, about: str) -> None:
        super().__init__(classes="dialog")
        self._about = inert(about)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(f"Note on {self._about}", markup=False)
            box = Input(placeholder="what to say about it")
            box.cursor_blink = False
            yield box
            yield Static("Enter: send   Esc: cancel", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_cancel(self) -> None:
        self.dismiss(None)


class Confirm(ModalScreen[bool]):
    """A question that only ``y`` affirms: never Enter, never the key that asked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("escape,n,q", "answer(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__(classes="dialog")
        self._question = "\n".join(inert(line) for line in question.splitlines())

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self._question, markup=False)
            yield Static("y: yes   Esc: no", markup=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Help(ModalScreen[None]):
    """The table of keys for where the person is, with the command that does the same; why a key cannot act now.

    Nothing is cut: where a line is too narrow for a text, it goes on below.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "close", show=False),
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("ctrl+d,pagedown,space", "move(10)", show=False),
        Binding("ctrl+u,pageup", "move(-10)", show=False),
        Binding("g,home", "move(-1000)", show=False),
        Binding("G,end", "move(1000)", show=False),
    ]
    AUTO_FOCUS = "RowList"

    def __init__(self, place: Place, table: Sequence[Key], blocked: Callable[[str], str | None]) -> None:
        super().__init__(classes="dialog full")
        self._place = place
        self._keys = at(place, table)
        self._blocked = blocked
        self._list = RowList((Column(""),))

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(f"Keys in {self._place}, and the command that does the same", markup=False)
            yield self._list
            yield Static("Esc: back", markup=False)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        width = self._list.scrollable_content_region.width - 2
        rows = []
        for key in self._keys:
            why = self._blocked(key.id)
            lines = _explained(key, width) + (_below(f"not now: {inert(why)}", width) if why else [])
            rows += [Row(f"{key.id}/{n}", (line,), "dim" if why else "") for n, line in enumerate(lines)]
        self._list.all(rows)

    def action_move(self, step: int) -> None:
        self._list.to((self._list.window.index(self._list.cursor) or 0) + step)

    def action_close(self) -> None:
        self.dismiss(None)


_KEY_WIDTH, _TWIN_WIDTH, _WIDE = 12, 27, 64


def _explained(key: Key, width: int) -> list[str]:
    """A key's lines: the command stands beside what it does, or below it where that is too narrow."""
    beside = width >= _WIDE and key.twin != ""
    words = wrapped(key.text, width - _KEY_WIDTH - (_TWIN_WIDTH if beside else 0))
    first = fit(key.shown, _KEY_WIDTH - 1) + " " + words[0]
    if beside:
        first = fit(first, width - _TWIN_WIDTH + 1) + key.twin
    rest = [" " * _KEY_WIDTH + word for word in words[1:]]
    return [first, *rest, *([] if beside or not key.twin else _below(key.twin, width))]


def _below(text: str, width: int) -> list[str]:
    return [" " * _KEY_WIDTH + line for line in wrapped(text, width - _KEY_WIDTH)]
