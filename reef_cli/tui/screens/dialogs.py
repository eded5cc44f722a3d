"""What stands before a screen: every key, a note's text box, a yes to what cannot be taken back at once."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from reef_cli.tui.keys import Place, at
from reef_cli.tui.text import inert
from reef_cli.tui.widgets.lines import Line
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
    """The table of keys for where the person is, with the command that does the same; why a key cannot act now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "close", show=False),
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("ctrl+d,pagedown", "move(10)", show=False),
        Binding("ctrl+u,pageup", "move(-10)", show=False),
    ]
    AUTO_FOCUS = "RowList"

    def __init__(self, place: Place, blocked: Callable[[str], str | None]) -> None:
        super().__init__(classes="dialog full")
        self._place = place
        self._blocked = blocked
        self._list = RowList((Column("key", 11), Column("what"), Column("shell", 26, least=64)))

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Line(id="bar")
            yield self._list
            yield Static("Esc: back", markup=False)

    def on_mount(self) -> None:
        self.query_one("#bar", Line).show(left=f"Keys in {self._place}, and the command that does the same")
        rows = []
        for key in at(self._place):
            why = self._blocked(key.id)
            rows.append(Row(key.id, (key.shown, key.text, key.twin), "dim" if why else ""))
            if why:
                rows.append(Row(f"{key.id}/why", ("", f"not now: {inert(why)}", ""), "dim"))
        self._list.all(rows)

    def action_move(self, step: int) -> None:
        self._list.to((self._list.window.index(self._list.cursor) or 0) + step)

    def action_close(self) -> None:
        self.dismiss(None)
