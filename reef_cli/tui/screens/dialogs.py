"""What stands before a screen: a yes to what cannot be taken back at once."""

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from reef_cli.tui.text import inert
from reef_cli.tui.widgets.rows import RowList

_Answer = TypeVar("_Answer")


class Once(ModalScreen[_Answer]):
    """Left once: keys pressed faster than it goes still come here, and would take the screen below it away, too."""

    def dismiss(self, result: _Answer | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Dialog(Once[_Answer]):
    """It stands at the end of the screen that is farther from the selected row: what it is about can be read."""

    def __init__(self) -> None:
        super().__init__(classes="dialog")

    def on_mount(self) -> None:
        for rows in self.app.screen_stack[-2].query(RowList):
            index = rows.window.index(rows.cursor)
            self.set_class(index is not None and 2 * (index - rows.view[0]) > rows.size.height, "above")


class Confirm(Dialog[bool]):
    """A question that only ``y`` affirms: never Enter, never the key that asked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("escape,n,q", "answer(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = "\n".join(inert(line) for line in question.splitlines())

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self._question, markup=False)
            yield Static("y: yes   Esc: no", markup=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
