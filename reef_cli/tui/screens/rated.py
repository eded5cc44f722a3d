"""Feedback keys of a screen: what they are about, and that it shows at once that it waits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reef_cli.tui.screens.dialogs import Note
from reef_cli.tui.screens.panel import Panel

#: They need something to be about.
RATING: Final = frozenset({"good", "bad", "clear", "note"})


class Rated(Panel):
    """A screen of records or sessions. Feedback waits in the outbox, not here: leaving the screen loses nothing."""

    def meant(self) -> Sequence[Mapping[str, Any]]:
        """The rows that a key is about now: records, or sessions for the last answer of each."""
        raise NotImplementedError

    def named(self) -> str:
        """What a note is on, for its title."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Show what waits, without asking the daemon."""
        raise NotImplementedError

    def rated(self) -> None:
        super().rated()
        if self.desk.lost is not None:
            self.redraw()

    def do_good(self) -> None:
        self.desk.ratings.rate_many(self.meant(), 1.0)
        self.redraw()

    def do_bad(self) -> None:
        self.desk.ratings.rate_many(self.meant(), 0.0)
        self.redraw()

    def do_clear(self) -> None:
        self.desk.ratings.clear_many(self.meant())
        self.redraw()

    def do_note(self) -> None:
        rows = self.meant()

        def send(text: str | None) -> None:
            if text:
                self.desk.ratings.note_many(rows, text)
                self.redraw()

        self.app.push_screen(Note(self.named()), send)

    def do_undo(self) -> None:
        self.desk.ratings.undo()
        self.redraw()
