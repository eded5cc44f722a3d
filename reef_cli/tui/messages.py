"""What the feed's thread tells the application. A worker never touches a widget: it posts one of these."""

from dataclasses import dataclass
from typing import Any

from textual.message import Message


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: ``record``, ``report``, ``engine``, ``job`` or ``release``, with its data."""

    name: str
    data: Any


class Heard(Message):
    """Events wait in the feed. Posted once, however many come, until they are taken."""


class Connected(Message):
    """The daemon answers, for the first time or again: whatever is shown may be old."""


class Lost(Message):
    """The daemon does not answer. ``running`` is False where nothing listens at all."""

    def __init__(self, reason: str, *, running: bool) -> None:
        super().__init__()
        self.reason = reason
        self.running = running


class Told(Message):
    """What became of feedback: it is stored, it waits, or it was refused."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
