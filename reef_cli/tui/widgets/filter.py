"""The line above a list where a query is typed: applied a moment after the last letter, kept with Enter, dropped with
Esc, and what was kept before comes back with ↑.
"""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from reef_cli.tui.widgets.box import Box

#: Letters that follow one another faster ask once.
_SETTLED_SECONDS: Final = 0.12


class Filter(Horizontal):
    DEFAULT_CSS = "Filter { display: none; height: 1; } Filter > Static { width: 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "drop", show=False),
        Binding("up", "remember(-1)", show=False),
        Binding("down", "remember(1)", show=False),
    ]

    class Typed(Message):
        """It says something else now."""

    class Left(Message):
        """The person goes back to the list."""

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self.box = Box(placeholder=placeholder, compact=True, select_on_focus=False)
        self.box.cursor_blink = False
        self._timer: Timer | None = None
        self._kept: list[str] = []
        self._place = 0

    def compose(self) -> ComposeResult:
        yield Static("/ ", markup=False)
        yield self.box

    @property
    def value(self) -> str:
        return self.box.value.strip()

    def open(self) -> None:
        self.display = True
        self._place = len(self._kept)
        self.box.focus()
        self.box.cursor_position = len(self.box.value)

    def drop(self) -> None:
        """Nothing is asked for any more."""
        self.box.value = ""
        self.display = False
        self._settle()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_SETTLED_SECONDS, self._settle)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.value:
            self._kept = [*(one for one in self._kept if one != self.value), self.value]
        self.display = bool(self.value)
        self._settle()
        self.post_message(self.Left())

    def action_drop(self) -> None:
        self.drop()
        self.post_message(self.Left())

    def action_remember(self, step: int) -> None:
        """What was kept, further back or nearer; below the last one stands nothing."""
        self._place = max(0, min(self._place + step, len(self._kept)))
        self.box.value = self._kept[self._place] if self._place < len(self._kept) else ""
        self.box.cursor_position = len(self.box.value)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.post_message(self.Typed())
