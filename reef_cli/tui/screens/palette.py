"""The command palette: type some words of what should happen. What cannot be done now says why."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from reef_cli.tui.choices import Choice, matching
from reef_cli.tui.screens.dialogs import Once
from reef_cli.tui.text import inert
from reef_cli.tui.widgets.box import Box
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import Row

_COLUMNS = (Column("key", 12, least=50), Column("what"), Column("command", 27, least=70))
_HINT = "Enter: do it   ↑ ↓: choose   Esc: back"


class Palette(Once[Choice | None]):
    """Dismissed with what was chosen, whether or not it can act now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", show=False),
        Binding("enter", "choose", show=False),
        Binding("down,ctrl+n", "move(1)", show=False),
        Binding("up,ctrl+p", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]
    AUTO_FOCUS = "Input"

    def __init__(self, offered: Sequence[Choice]) -> None:
        super().__init__(classes="dialog full")
        self._offered = offered
        self._found: list[Choice] = list(offered)
        self.list = RowList(_COLUMNS, empty="nothing is called that")
        self.list.can_focus = False
        self._more = Static("", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            box = Box(placeholder="what to do: some words, or a command of reef")
            box.cursor_blink = False
            yield box
            yield self.list
            yield self._more
            yield Static(_HINT, markup=False)

    def on_mount(self) -> None:
        self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._found = matching(self._offered, event.value)
        self._show()

    def _show(self) -> None:
        rows = [
            Row(f"{choice.kind}/{choice.value}", (choice.shown, choice.text, choice.twin), "dim" if choice.why else "")
            for choice in self._found
        ]
        self.list.all(rows)
        self.list.to(0)
        self._tell()

    def _tell(self) -> None:
        """All of the selected one, which its line may have no room for."""
        choice = self._chosen()
        words = [] if choice is None else [choice.text, f"not now: {inert(choice.why)}" if choice.why else choice.twin]
        self._more.update(" · ".join(word for word in words if word))

    def _chosen(self) -> Choice | None:
        index = self.list.window.index(self.list.cursor)
        return None if index is None else self._found[index]

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        self._tell()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_choose()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        choice = self._chosen()
        if choice is not None:
            self.dismiss(choice)

    def action_move(self, step: int) -> None:
        self.list.to((self.list.window.index(self.list.cursor) or 0) + step)

    def action_cancel(self) -> None:
        self.dismiss(None)
