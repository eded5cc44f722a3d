"""Status: what `reef status` tells, and the checks of `reef doctor` with their fixes; pausing what is recorded.

It has something to say with the daemon down, too: since when, why, and what to do about it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.timer import Timer

from daemon.core.errors import Unreachable
from daemon.core.version import PROTOCOL
from reef_cli import lifecycle, output, standing
from reef_cli.checks import Check, everything
from reef_cli.standing import Fact
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.replay import FIXED
from reef_cli.tui.screens.reading import Reading, hanging
from reef_cli.tui.screens.work import Repeating, off_loop
from reef_cli.tui.text import inert
from reef_cli.tui.window import Row

_STYLES = {"warn": "warning", "fail": "error"}
_COUNT_SECONDS = 0.5
_NAME, _MARK, _CHECK = 11, 5, 12


class Status(Reading):
    place = Place.STATUS
    alone = True
    empty = "…"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._told: Mapping[str, Any] | None = None
        self._facts: list[Fact] = []
        self._made: list[Check] = []
        self._checking = False
        self._checked: bool | None = None  # whether the daemon ran when it was last checked
        self._due: Timer | None = None
        self.checks = Repeating(self, self._check)

    async def load(self) -> None:
        self._told, self._facts = await off_loop(self._asked)
        self.draw()
        self.foot.refresh()
        runs = self._told is not None
        if (
            runs != self._checked and not self.desk.replay
        ):  # the checks are of this machine, a recording may be of another
            self._checked = runs
            self.checks.ask()

    def _asked(self) -> tuple[Mapping[str, Any] | None, list[Fact]]:
        try:
            told: dict[str, Any] = self.desk.client.get("/reef/status")
        except Unreachable:
            why = lifecycle.down(self.desk.home)
            since = f", last sign of life {output.clock(why.since_ns)}" if why.since_ns else ""
            said = f"{why.reason}{since}"
            return None, [
                ("reef", f"is not running: {said}"),
                ("home", str(self.desk.home.root)),
                ("next", "reef start"),
            ]
        if told["protocol"] != PROTOCOL:  # its other fields may mean something else, or be missing
            return None, [("reef", f"{told['version']} runs, which is another version"), ("next", "reef restart")]
        head = ("reef", f"{told['version']} runs {standing.since(told)}")
        return told, [head, *standing.facts(told), ("next", standing.next_command(told))]

    async def _check(self) -> None:
        """Each check is shown as it is made: one of them starts a process, others ask the network."""
        self._made, self._checking = [], True
        checks = everything(self.desk.home)
        try:
            while (check := await off_loop(next, checks, None)) is not None:
                self._made.append(check)
                self.draw()
        finally:  # the daemon may go while it is asked
            self._checking = False
            self.draw()
            self.foot.refresh()

    def lines(self, width: int) -> Sequence[Row]:
        if not self._facts:
            return []
        rows = [row for n, (name, text) in enumerate(self._facts)
                for row in hanging(f"fact{n}", f"{name:<{_NAME}}", text, width)]  # fmt: skip
        if self.desk.replay:
            return rows
        troubles = sum(check.state != "ok" for check in self._made)
        told = "…" if self._checking else output.count(troubles, "trouble") if troubles else "all is well"
        rows += [Row("", ("",)), Row("checks", (f"checks: {told}",), "bold")]
        for check in self._made:
            head = f"{check.state:<{_MARK}}{check.name:<{_CHECK}}"
            rows += hanging(check.name, head, check.detail, width, style=_STYLES.get(check.state, ""))
            if check.fix:
                rows += hanging(f"{check.name}/fix", f"{'':<{len(head)}}fix: ", check.fix, width)
        return rows

    def copied(self, row: Row) -> str:
        """A fact or a fix without its name: what can be run."""
        return inert(row.data) if row.data else super().copied(row)

    def heard(self, events: Sequence[Event]) -> None:
        """While agents work there is something new ten times a second; a person reads counts once."""
        if self._due is None:
            self._due = self.set_timer(_COUNT_SECONDS, self._count)

    def _count(self) -> None:
        self._due = None
        self.reload.ask()

    def blocked(self, id: str) -> str | None:
        if id == "check" and self.desk.replay:
            return FIXED
        if id == "check":
            return "the checks run already" if self._checking else None
        why = super().blocked(id)
        return "nothing is known of the daemon yet" if why is None and id == "record" and self._told is None else why

    def do_check(self) -> None:
        self.checks.ask()

    def do_record(self) -> None:
        assert self._told is not None  # `blocked` asks first
        paused = self._told["recording"]["state"] == "paused"

        def work() -> str:
            self.desk.client.post("/reef/resume" if paused else "/reef/pause", {})
            return "recording is on" if paused else "recording is paused; agents are served all the same"

        self.act(work)
