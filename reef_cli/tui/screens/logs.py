"""Logs: the daemon's, the engine's and the newest jobs', as they grow, by level and words. The daemon may be down.

Only the last lines are held. What is shown comes from the files themselves, as in `reef logs`.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from textual.events import Resize
from textual.timer import Timer
from textual.widgets import Input

from reef_cli import logfile, output
from reef_cli.logfile import LEVELS, Level, Sieve, Tail
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.work import begin, off_loop
from reef_cli.tui.text import inert, wrapped
from reef_cli.tui.widgets.lines import Line
from reef_cli.tui.widgets.prompt import Prompt
from reef_cli.tui.window import Row

#: Lines held and rows shown, and what is held of each line.
_MOST: Final = 5000
_LONGEST: Final = 2000
_JOBS: Final = 10
_POLL_SECONDS: Final = 0.5
_STYLES: Final = {"error": "error", "critical": "error", "warning": "warning", "debug": "dim"}


class Logs(Panel):
    place = Place.LOGS
    alone = True
    titled = False
    follow = True
    empty = "…"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._of = "daemon"
        self._level: Level | None = None
        self._words = ""
        self._tail: Tail | None = None
        self._held: deque[str] = deque(maxlen=_MOST)
        self._came = 0  # lines, since this log was opened: a row is known by its line's number
        self._sieve = Sieve()
        self._style = ""
        self._rows: list[Row] = []
        self._poll: Timer | None = None
        self.head = Line(style="dim")
        self.prompt = Prompt("words that a line has; Enter: keep, Esc: all lines")
        self.above, self.below = (self.head,), (self.prompt,)

    def on_screen_resume(self) -> None:
        if self._poll is None:
            self._poll = self.set_interval(_POLL_SECONDS, self.reload.ask)
        self._poll.resume()

    def on_screen_suspend(self) -> None:
        if self._poll is not None:
            self._poll.pause()

    def on_unmount(self) -> None:
        if self._tail is not None:
            self._tail.close()

    # -- reading ------------------------------------------------------------------------------------

    async def load(self) -> None:
        name = self._of
        lines, anew = await off_loop(self._read, name)
        if name != self._of:  # another one was chosen meanwhile
            self.reload.ask()
            return
        if anew:
            self._held.clear()
            self._came = 0
        self._held += lines
        self._came += len(lines)
        if anew:
            self._draw()
        elif lines:
            self._show(self._sifted(lines, self._came - len(lines)))

    def _read(self, name: str) -> tuple[list[str], bool]:
        """The lines that came; True: all of a log that was not read before."""
        if self.desk.replay:
            return [], self._tail is None
        path = logfile.path_of(self.desk.home, name)
        if self._tail is not None and self._tail.path == path:
            return [line[:_LONGEST] for line in self._tail.more()], False
        if self._tail is not None:
            self._tail.close()
        self._tail = Tail(path)
        return list(deque((line[:_LONGEST] for line in self._tail.lines()), maxlen=_MOST)), True

    # -- showing ------------------------------------------------------------------------------------

    def _draw(self) -> None:
        """All of it anew: another log, level, words or width."""
        self._sieve, self._style, self._rows = Sieve(self._level, self._words), "", []
        self._show(self._sifted(self._held, self._came - len(self._held)))

    def _sifted(self, lines: Sequence[str], number: int) -> list[Row]:
        width = max(self.list.scrollable_content_region.width - 2, 1)
        rows: list[Row] = []
        for n, line in enumerate(lines, number):
            if (level := logfile.level_of(line)) is not None:
                self._style = _STYLES.get(level, "")
            if self._sieve.lets(line):
                parts = wrapped(line.rstrip("\n"), width)
                rows += [Row(f"{n}:{k}", (part,), self._style, data=line) for k, part in enumerate(parts)]
        return rows

    def _show(self, fresh: list[Row]) -> None:
        rows = [*self._rows, *fresh]
        self._rows = list(islice(rows, max(len(rows) - _MOST, 0), None))
        self.list.empty = self.nothing()
        told = [self._of, f"level {self._level or 'all'}", *([f"/{self._words}"] if self._words else [])]
        self.head.show(left=" · ".join(told), right=output.count(len(self._held), "line"))
        self.list.all(self._rows)
        self.foot.refresh()

    def nothing(self) -> str:
        if self.desk.replay:
            return "a recording has no logs"
        if self._held and (self._level or self._words):
            return "no such line: l and / say which are shown"
        return (
            "nothing logged yet: reef start" if self._of == "daemon" else f"nothing yet: reef logs -f --of {self._of}"
        )

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def copied(self, row: Row) -> str:
        return inert(row.data.rstrip("\n"))

    def blocked(self, id: str) -> str | None:
        return None if id == "follow" else super().blocked(id)

    # -- keys ---------------------------------------------------------------------------------------

    def do_filter(self) -> None:
        self.prompt.open()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._words = event.value
        self._draw()

    def on_prompt_left(self) -> None:
        self.list.focus()

    def do_level(self) -> None:
        """All, then from each level up, then all again."""
        order: list[Level | None] = [None, *LEVELS]
        self._level = order[(order.index(self._level) + 1) % len(order)]
        self._draw()

    def do_source(self) -> None:
        begin(self, self._next())

    async def _next(self) -> None:
        names = await off_loop(logfile.names, self.desk.home, _JOBS)
        place = names.index(self._of) if self._of in names else -1
        self._of = names[(place + 1) % len(names)]
        self.list.follow = True
        self.reload.ask()
