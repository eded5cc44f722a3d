"""A line to type into, whatever is pasted there."""

from typing import Final

from textual.widgets import Input

from reef_cli.tui.text import inert

#: Characters: more than anyone types, and less than what a request's head has room for.
_MOST: Final = 2000


class Box(Input):
    """What is pasted is inert, as what agents say is, and cut where it would be too long."""

    def replace(self, text: str, start: int, end: int) -> None:
        room = _MOST - len(self.value) + abs(end - start)
        super().replace(inert(text[: max(room, 0)])[: max(room, 0)], start, end)
