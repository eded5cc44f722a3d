"""Releases of every scenario, candidates included: which serves, which are held, what waits and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.events import Resize

from reef_cli import decisions
from reef_cli.tui import chain
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.deciding import Deciding
from reef_cli.tui.screens.release import Card, Diff
from reef_cli.tui.screens.work import off_loop
from reef_cli.tui.text import inert, moment, one_line
from reef_cli.tui.widgets.lines import Line
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import Row

#: The newest ones, of one scenario; older ones are for `reef releases list --before`.
_MOST = 200
_STYLES = {"released": "", "pending": "warning", "rejected": "dim", "inconclusive": "dim", "kept": "dim"}
_STATES = {"pending": "? pending", "rejected": "x rejected", "inconclusive": "~ inconclusive", "kept": "= kept"}


class Releases(Deciding):
    place = Place.RELEASES
    columns = (
        Column("release", 13),
        Column("scenario", 12, least=90),
        Column("kind", 9, least=104),
        Column("state", 14),
        Column("verdict", 12, least=62),
        Column("when", 8, least=50),
        Column("reason"),
    )
    empty = 'no release yet: the agents are as they were; reef evolve "…" asks for one'

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._known: list[Mapping[str, Any]] = []
        self._made: str | None = None  # what a decision has made is selected once it is there
        self.chain = Line(style="dim")
        self.last = (self.chain,)

    async def load(self) -> None:
        self._known = await off_loop(self._fetched)
        made, self._made = self._made, None
        self.list.all([_row(release, self.desk.now()) for release in self._known], select=made)
        self._link()
        self.foot.refresh()

    def _link(self) -> None:
        """The selected one's place among those before and after it."""
        release = self.about
        self.chain.show(left=chain.line(self._known, release, self.size.width) if release else "")

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        self._link()

    def on_screen_resume(self) -> None:
        self.desk.news = ""  # it is seen here
        super().on_screen_resume()

    def on_resize(self, event: Resize) -> None:
        self._link()

    def _fetched(self) -> list[Mapping[str, Any]]:
        """Every scenario's releases and candidates, newest first."""
        found: list[Mapping[str, Any]] = []
        for scenario in [one["name"] for one in self.desk.client.get("/reef/scenarios")["items"]]:
            page = self.desk.client.get("/reef/releases", scenario=scenario, state="all", limit=_MOST)
            held = page.get("pinned")
            found += [{**one, "pinned": one["id"] == held, "held": held} for one in page["items"]]
        return sorted(found, key=lambda release: int(release["created_ns"]), reverse=True)

    def heard(self, events: Sequence[Event]) -> None:
        if any(event.name in ("release", "release_pin", "release_unpin") for event in events):
            self.reload.ask()

    def decided(self, release: Mapping[str, Any]) -> None:
        self._made = release["id"]

    def do_card(self) -> None:
        self.app.push_screen(Card(self.desk, self.about))

    def do_diff(self) -> None:
        self.app.push_screen(Diff(self.desk, self.about))


def _row(release: Mapping[str, Any], now_ns: int) -> Row:
    state, serves = decisions.state(release), decisions.serves(release)
    note = f"{release['note']}; " if release["note"] else ""
    cells = (
        inert(release["id"]),
        inert(release["scenario"]),
        release["kind"],
        _state(release),
        _verdict(release),
        moment(release["created_ns"], now_ns),
        one_line(f"{note}{release['reason']}"),
    )
    return Row(release["id"], cells, "bold" if serves else _STYLES.get(state, ""), data=release)


def _state(release: Mapping[str, Any]) -> str:
    """What became of it; of the head and of what clients are held at, whether it serves them."""
    if decisions.serves(release):
        return "* serves, held" if release["pinned"] else "* serves"
    if release["head"]:
        return "head, not used"
    in_chain = "in chain" if release["kind"] == "learned" else inert(release["kind"])
    return _STATES.get(decisions.state(release), in_chain)


def _verdict(release: Mapping[str, Any]) -> str:
    """What fits: an inconclusive one says so in its state."""
    told = decisions.verdict(release)
    return told.removeprefix("inconclusive ") if decisions.state(release) == "inconclusive" else told
