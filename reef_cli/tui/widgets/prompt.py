"""A line to type into above the footer: `/`. There only while it is typed into; every letter is a letter here."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from reef_cli.tui.widgets.box import Box


class Prompt(Box):
    """`Input.Changed` tells each change; Enter leaves what was typed, Esc empties it. `Left` tells either."""

    DEFAULT_CSS = "Prompt { border: none; height: 1; padding: 0 1; display: none; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "leave(False)", show=False),
        Binding("escape", "leave(True)", show=False),
    ]

    class Left(Message):
        """Nothing is typed any more."""

    def __init__(self, hint: str) -> None:
        super().__init__(placeholder=hint, compact=True)
        self.cursor_blink = False

    def open(self) -> None:
        self.display = True
        self.focus()

    def action_leave(self, empty: bool) -> None:
        if empty:
            self.value = ""
        self.display = False
        self.post_message(self.Left())
