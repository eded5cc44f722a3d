"""A box for a few lines of text: Enter is done, up at its beginning goes back to what was written before.

Terminals do not tell Enter with shift or ctrl from Enter alone: ctrl+j makes a new line everywhere. What is pasted is
spelled out where a terminal could act on it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from reef_cli.tui.text import inert


class Writing(TextArea):
    """Every letter is a letter here. ``recalls`` is what up goes back to, the oldest first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "done", show=False, priority=True),
        Binding("ctrl+j,shift+enter,alt+enter", "new_line", show=False, priority=True),
    ]

    class Done(Message):
        """The person pressed Enter."""

    def __init__(self, text: str = "", *, placeholder: str = "", **kwargs: Any) -> None:
        super().__init__(_inert(text), highlight_cursor_line=False, placeholder=placeholder, **kwargs)
        self.cursor_blink = False
        self.recalls: Sequence[str] = ()
        self._at = 0  # how far back: 0 is what is being written
        self._draft = ""

    def action_done(self) -> None:
        self.post_message(self.Done())

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_cursor_up(self, select: bool = False) -> None:
        if select or not self._recall(1, self.cursor_location[0] == 0):
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if select or not self._recall(-1, self.cursor_location[0] == self.document.line_count - 1):
            super().action_cursor_down(select)

    def _recall(self, step: int, at_edge: bool) -> bool:
        at = self._at + step
        if not at_edge or not 0 <= at <= len(self.recalls):
            return False
        if self._at == 0:
            self._draft = self.text
        self._at = at
        self.text = _inert(self.recalls[-at]) if at else self._draft
        self.move_cursor(self.document.end)
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self._replace_via_keyboard(_inert(event.text.replace("\r\n", "\n").replace("\r", "\n")), *self.selection)


def _inert(text: str) -> str:
    return "\n".join(map(inert, text.split("\n")))
