"""Releases of every scenario, candidates included: their cards and diffs; approve, turn down, roll back.

Each of these three asks first, and only ``y`` is a yes: they change what serves every agent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize

from daemon.core.client import segment
from reef_cli import decisions, output
from reef_cli.tui import chain
from reef_cli.tui.desk import Desk
from reef_cli.tui.differences import FileDiff, by_file
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.panel import Panel, bindings
from reef_cli.tui.screens.reading import Reading, plain
from reef_cli.tui.screens.work import off_loop
from reef_cli.tui.text import inert, moment, one_line, wrapped
from reef_cli.tui.widgets.lines import Line
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import Row

#: The newest ones, of one scenario; older ones are for `reef releases list --before`.
_MOST = 200
#: A file's diff of more lines than this is folded at first.
_LONG = 200
_STYLES = {"released": "", "pending": "warning", "rejected": "dim", "inconclusive": "dim", "kept": "dim"}
_STATES = {"pending": "? pending", "rejected": "x rejected", "inconclusive": "~ inconclusive", "kept": "= kept"}


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
        verdict = decisions.verdict(release)
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
        Column("state", 14),
        Column("verdict", 12, least=62),
        Column("when", 8, least=50),
        Column("reason"),
    )
    empty = 'no release yet: the agents are as they were; reef evolve "…" asks for one'
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.RELEASES)]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._known: list[Mapping[str, Any]] = []
        self.chain = Line(style="dim")

    def compose(self) -> ComposeResult:
        for part in super().compose():
            if part is self.said:
                yield self.chain
            yield part

    async def load(self) -> None:
        self._known = await off_loop(self._fetched)
        self.list.all([_row(release, self.desk.now()) for release in self._known])
        self._link()
        self.foot.refresh()

    def _link(self) -> None:
        """The selected one's place among those before and after it."""
        release = self.release()
        self.chain.show(left=chain.line(self._known, release, self.size.width) if release else "")

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        self._link()

    def on_resize(self, event: Resize) -> None:
        self._link()

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
    """What a release changes against the one before it, file by file."""

    place = Place.DIFF
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.DIFF)]

    def __init__(self, desk: Desk, release: Mapping[str, Any]) -> None:
        super().__init__(desk, release)
        self._files: list[FileDiff] | None = None
        self._folded: set[str] = set()

    async def load(self) -> None:
        name, scenario = segment(self._release["id"]), self._release["scenario"]
        told = await off_loop(self.desk.client.get, f"/reef/releases/{name}/diff", scenario=scenario)
        if self._files is None:
            files = self._files = by_file(str(told["diff"]))
            self._folded = {file.name for file in files if len(file.lines) > _LONG}
        self.draw()
        self.foot.refresh()

    def lines(self, width: int) -> Sequence[Row]:
        files, release = self._files or [], self._release
        changed = output.count(len(files), "file") if files else "nothing in the harness"
        told = [release["id"], f"gate: {decisions.verdict(release)}", changed]
        rows = [Row("head", (inert(" · ".join(told)),), "bold")]
        for file in files:
            folded = file.name in self._folded
            head = f"{'▸' if folded else '▾'} {file.name}  +{file.added} -{file.removed}"
            rows += [Row(f"{file.name}:{n}", (part,), "bold", data=file) for n, part in enumerate(wrapped(head, width))]
            if not folded:
                rows += plain("\n".join(file.lines), width, marked=True, name=f"{file.name}/", data=file)
        return rows

    def _file(self) -> FileDiff | None:
        row = self.list.selected
        return row.data if row is not None and isinstance(row.data, FileDiff) else None

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is None and id == "file" and not self._file():
            return f"no file is selected: {self.desk.key('down')} goes down to one"
        return why

    def do_file(self) -> None:
        file = self._file()
        assert file is not None  # `blocked` asks first
        self._folded ^= {file.name}
        self.draw(select=f"{file.name}:0")


def _row(release: Mapping[str, Any], now_ns: int) -> Row:
    state = decisions.state(release)
    cells = (
        inert(release["id"]),
        inert(release["scenario"]),
        release["kind"],
        "* serves" if release["head"] else _STATES.get(state, _kind(release)),
        _verdict(release),
        moment(release["created_ns"], now_ns),
        one_line(release["reason"]),
    )
    return Row(release["id"], cells, "bold" if release["head"] else _STYLES.get(state, ""), data=release)


def _kind(release: Mapping[str, Any]) -> str:
    return "in chain" if release["kind"] == "learned" else inert(release["kind"])


def _verdict(release: Mapping[str, Any]) -> str:
    """What fits: an inconclusive one says so in its state."""
    told = decisions.verdict(release)
    return told.removeprefix("inconclusive ") if decisions.state(release) == "inconclusive" else told
