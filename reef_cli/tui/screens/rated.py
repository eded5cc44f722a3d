"""Feedback keys of a screen: what they are about, and that it shows at once that it waits.

The dialogs are imported when one is asked for: the first paint does without them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from daemon.core.errors import UsageError
from reef_cli import questions
from reef_cli.scoring import Scale, scored, without
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.work import begin, off_loop
from reef_cli.tui.text import inert, one_line

#: They need something to be about.
RATING: Final = frozenset({"good", "bad", "clear", "note", "score", "task"})
#: A box of more takes seconds to wrap, while nothing else is heard.
PROMPT_MOST: Final = 100_000
PINNING: Final = "pin"
Rows = Sequence[Mapping[str, Any]]


class Rated(Panel):
    """A screen of records or sessions. Feedback waits in the outbox, not here: leaving the screen loses nothing."""

    def meant(self) -> Rows:
        """The rows that a key is about now: records, or sessions for the last answer of each."""
        raise NotImplementedError

    def sessions(self) -> Rows:
        """The sessions that a key is about now."""
        return self.meant()

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

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is not None or id not in ("score", "task"):
            return why
        if id == "task":
            return "a task is made of one question" if len(self.meant()) > 1 else None
        if self.meant() and self._scale() is None:
            error = without(inert(self.meant()[0]["scenario"]))
            return f"{error.message} ({error.hint})"
        return None

    def _scale(self) -> Scale | None:
        """What all that is meant is scored on; None where they differ, or have none."""
        found = {self.desk.scales.get(row["scenario"]) for row in self.meant()}
        return found.pop() if len(found) == 1 else None

    # -- keys ---------------------------------------------------------------------------------------

    def do_good(self) -> None:
        self.desk.ratings.rate_many(self.meant(), 1.0)
        self.redraw()

    def do_bad(self) -> None:
        self.desk.ratings.rate_many(self.meant(), 0.0)
        self.redraw()

    def do_clear(self) -> None:
        self.desk.ratings.clear_many(self.meant())
        self.redraw()

    def do_score(self) -> None:
        from reef_cli.tui.screens.saying import Mark

        rows, scale = self.meant(), self._scale()
        assert scale is not None  # `blocked` asks first

        def score(mark: int | None) -> None:
            if mark is not None:
                said = scored(mark, scale)
                self.desk.ratings.rate_many(rows, said["score"], said["metadata"])
                self.redraw()

        self.app.push_screen(Mark(self.named(), scale), score)

    def do_note(self) -> None:
        from reef_cli.tui.screens.saying import Note

        rows, ratings = self.meant(), self.desk.ratings

        def earlier() -> list[str]:
            return ratings.notes(rows[0]) if len(rows) == 1 else []

        def send(text: str | None) -> None:
            if text:
                ratings.note_many(rows, text)
                self.redraw()

        self.app.push_screen(Note(self.named(), earlier, ratings.written), send)

    def do_pin(self) -> None:
        sessions, ratings = self.sessions(), self.desk.ratings
        ratings.pin_many(sessions, pinned=not all(map(ratings.golden, sessions)))
        self.redraw()

    def do_task(self) -> None:
        begin(self, self._asking(self.meant()[0]))

    async def _asking(self, row: Mapping[str, Any]) -> None:
        from reef_cli.tui.screens.saying import Task

        client = self.desk.client
        find = questions.question if "receipt" in row else questions.of_session
        id = str(row.get("receipt") or row["id"])
        prompt, scenario = await off_loop(find, client, id)
        if len(prompt) > PROMPT_MOST:
            said = f"the question has {len(prompt)} characters, too many to be changed here"
            raise UsageError(said, hint=f"reef tasks add --from {id} --form one_sentence")

        def add(task: Mapping[str, object]) -> str:
            kept = client.post("/reef/tasks", task, scope=scenario)
            if kept["created"]:
                self.desk.ratings.made(str(kept["id"]))
            word = "task added" if kept["created"] else "that task is there already"
            return f"{word}: {kept['id']}, in the {kept['set']} set; reef tasks list"

        self.app.push_screen(Task(prompt, add), lambda told: self.say(one_line(told)) if told else None)

    def do_undo(self) -> None:
        self.desk.ratings.undo()
        self.redraw()
