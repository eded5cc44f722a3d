"""Releases of every scenario, candidates included: their cards and diffs; approve, turn down, roll back.

Each of these three asks first, and only ``y`` is a yes: they change what serves every agent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType

from daemon.core.client import segment
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.panel import Panel, bindings, off_loop
from reef_cli.tui.screens.reading import Reading, plain
from reef_cli.tui.text import inert, moment, one_line
from reef_cli.tui.widgets.rows import Column
from reef_cli.tui.window import Row

#: The newest ones, of one scenario; older ones are for `reef releases list --before`.
_MOST = 200
_STYLES = {"released": "", "pending": "warning", "rejected": "dim"}
_STATES = {"pending": "? pending", "rejected": "x rejected"}


class _Deciding(Panel):
    """Deciding about the release that is selected or read."""

    def release(self) -> Mapping[str, Any] | None:
        raise NotImplementedError

    def decided(self, release: Mapping[str, Any]) -> None:
        """What a decision made: a candidate that is approved gets a number, and with it another id."""

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is not None or id not in ("card", "diff", "approve", "reject", "rollback"):
            return why
        release = self.release()
        if release is None:
            return "no release is selected"
        state, name = release["state"], release["id"]
        if id == "approve" and state == "released":
            return f"{name} is released already"
        if id == "reject" and state != "pending":
            return f"{name} is {state}: only a pending one can be turned down"
        if id == "rollback" and state != "released":
            return f"{name} was never released: approve it instead"
        if id == "rollback" and release["head"]:
            return f"{name} serves now: select the one to go back to"
        return None

    def do_approve(self) -> None:
        release = self._chosen()
        against = release["state"] == "rejected"
        verdict = _verdict(release)
        warning = f"The gate did not accept it ({verdict}): it will be marked unproven.\n" if against else ""
        body = {"scenario": release["scenario"], **({"force": True} if against else {})}
        self._ask(f"{warning}Release {release['id']} to scenario {release['scenario']}?", release, "approve", body)

    def do_reject(self) -> None:
        release = self._chosen()
        body = {"scenario": release["scenario"]}
        self._ask(f"Turn {release['id']} down? It is kept, and can still be approved.", release, "reject", body)

    def do_rollback(self) -> None:
        release = self._chosen()
        question = f"Roll scenario {release['scenario']} back to {release['id']}? It becomes a new release."
        body = {"scenario": release["scenario"], "to": release["id"]}
        self._ask(question, release, "rollback", body)

    def do_diff(self) -> None:
        self.app.push_screen(Diff(self.desk, self._chosen()))

    def _chosen(self) -> Mapping[str, Any]:
        release = self.release()
        assert release is not None  # `blocked` asks first
        return release

    def _ask(self, question: str, release: Mapping[str, Any], verb: str, body: Mapping[str, object]) -> None:
        path = "rollback" if verb == "rollback" else f"{segment(release['id'])}/{verb}"

        def work() -> str:
            told = self.desk.client.post(f"/reef/releases/{path}", body)
            self.decided(told)
            return f"{verb}: {told['id']} is {told['state']} ({told['kind']})"

        self.confirm(question, work)


class Releases(_Deciding):
    place = Place.RELEASES
    columns = (
        Column("release", 13),
        Column("scenario", 12, least=90),
        Column("kind", 9, least=104),
        Column("state", 10),
        Column("verdict", 12, least=56),
        Column("when", 8, least=44),
        Column("reason"),
    )
    empty = 'no release yet: the agents are as they were; reef evolve "…" asks for one'
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.RELEASES)]

    async def load(self) -> None:
        rows = await off_loop(self._fetched)
        self.list.all([_row(release, self.desk.now()) for release in rows])
        self.foot.refresh()

    def _fetched(self) -> list[Mapping[str, Any]]:
        """Every scenario's releases and candidates, newest first."""
        found: list[Mapping[str, Any]] = []
        for scenario in [one["name"] for one in self.desk.client.get("/reef/scenarios")["items"]]:
            found += self.desk.client.get("/reef/releases", scenario=scenario, state="all", limit=_MOST)["items"]
        return sorted(found, key=lambda release: int(release["created_ns"]), reverse=True)

    def heard(self, events: Sequence[Event]) -> None:
        if any(event.name == "release" for event in events):
            self.reload.ask()

    def release(self) -> Mapping[str, Any] | None:
        row = self.list.selected
        return None if row is None else row.data

    def do_card(self) -> None:
        self.app.push_screen(Card(self.desk, self._chosen()))


class Card(Reading, _Deciding):
    """A release's card: why it is there and what the gate saw."""

    place = Place.RELEASE
    empty = "…"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.RELEASE)]

    def __init__(self, desk: Desk, release: Mapping[str, Any]) -> None:
        super().__init__(desk)
        self._release = release
        self._text = ""

    async def load(self) -> None:
        name, scenario = segment(self._release["id"]), self._release["scenario"]
        self._release = await off_loop(self.desk.client.get, f"/reef/releases/{name}", scenario=scenario)
        self._text = str(self._release["card"])
        self.draw()
        self.foot.refresh()

    def lines(self, width: int) -> Sequence[Row]:
        return plain(self._text, width)

    def heard(self, events: Sequence[Event]) -> None:
        """The release itself changed, under its old name or (approved) a new one with the same end."""
        end = self._release["id"].partition("-")[2]
        same = [event.data for event in events if event.name == "release" and event.data["id"].endswith(f"-{end}")]
        if same:
            self._release = same[-1]
            self.reload.ask()

    def release(self) -> Mapping[str, Any]:
        return self._release

    def decided(self, release: Mapping[str, Any]) -> None:
        self._release = release


class Diff(Card):
    """What a release changes against the one before it."""

    async def load(self) -> None:
        name, scenario = segment(self._release["id"]), self._release["scenario"]
        told = await off_loop(self.desk.client.get, f"/reef/releases/{name}/diff", scenario=scenario)
        self._text = str(told["diff"]) or "nothing in the harness"
        self.draw()

    def lines(self, width: int) -> Sequence[Row]:
        return plain(self._text, width, marked=True)

    def blocked(self, id: str) -> str | None:
        return "this is the diff" if id == "diff" else super().blocked(id)


def _row(release: Mapping[str, Any], now_ns: int) -> Row:
    state = release["state"]
    cells = (
        inert(release["id"]),
        inert(release["scenario"]),
        release["kind"],
        "* serves"
        if release["head"]
        else _STATES.get(state, "in chain" if release["kind"] == "learned" else release["kind"]),
        _verdict(release),
        moment(release["created_ns"], now_ns),
        one_line(release["reason"]),
    )
    return Row(release["id"], cells, "bold" if release["head"] else _STYLES.get(state, ""), data=release)


def _verdict(release: Mapping[str, Any]) -> str:
    return str(release["gate"]["verdict"]) if release["gate"] else "not judged"
