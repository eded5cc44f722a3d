"""What stands before a screen: a yes to what cannot be taken back at once."""

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from reef_cli.tui.text import inert

_T = TypeVar("_T")


class Dialog(ModalScreen[_T]):
    """Left once: keys pressed faster than it goes still come here, and would take the screen below it away, too."""

    def dismiss(self, result: _T | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Confirm(Dialog[bool]):
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
