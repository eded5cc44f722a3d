"""One release: its card, with what people said that it came from, and what it changes, file by file, and who put each
line there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from daemon.core.client import segment
from daemon.core.harness import BELOW
from reef_cli import decisions, output
from reef_cli.tui.desk import Desk
from reef_cli.tui.differences import FileDiff, by_file
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.deciding import Deciding
from reef_cli.tui.screens.reading import Reading, hanging, plain
from reef_cli.tui.screens.work import off_loop
from reef_cli.tui.text import inert, one_line, wrapped
from reef_cli.tui.widgets.lines import Line
from reef_cli.tui.widgets.rows import RowList
from reef_cli.tui.window import Row

#: A file's diff of more lines than this is folded at first.
_LONG: Final = 200


class Card(Reading, Deciding):
    """A release's card: why it is there and what the gate saw."""

    place = Place.RELEASE
    empty = "…"

    def __init__(self, desk: Desk, release: Mapping[str, Any]) -> None:
        super().__init__(desk)
        self._release = release
        self._text = ""

    async def load(self) -> None:
        name, scenario = segment(self._release["id"]), self._release["scenario"]
        self._release = await off_loop(self.desk.client.get, f"/reef/releases/{name}", scenario=scenario)
        told = await off_loop(self.desk.client.get, f"/reef/releases/{name}/card", scenario=scenario)
        self._text = "\n".join((str(told["card"]), *self._notes(), *map(_said, told["said"])))
        self.draw()
        self.foot.refresh()

    def _notes(self) -> Iterator[str]:
        """Why it waits or was turned down, what in it can act by itself, whether clients are held at it."""
        release = self._release
        for name in ("note", "acts"):
            if release[name] and not (name == "acts" and release["acts"] in release["note"]):
                yield f"{name:<10}{one_line(release[name])}"
        if release["pinned"]:
            yield f"{'pinned':<10}clients are held here; {self.desk.key('hold')} lets them follow the head again"

    def lines(self, width: int) -> Sequence[Row]:
        return plain(self._text, width)

    def heard(self, events: Sequence[Event]) -> None:
        """The release itself changed, under its old name or (approved) a new one with the same end; or what the
        clients are held at did."""
        end = self._release["id"].partition("-")[2]
        same = [event.data for event in events if event.name == "release" and event.data["id"].endswith(f"-{end}")]
        if same:
            self.decided(same[-1])
        if same or any(event.name in ("release_pin", "release_unpin") for event in events):
            self.reload.ask()

    @property
    def about(self) -> Mapping[str, Any]:
        return self._release

    def decided(self, release: Mapping[str, Any]) -> None:
        self._release = {**self._release, **release}

    def do_diff(self) -> None:
        self.app.push_screen(Diff(self.desk, self._release))


class Diff(Card):
    """What a release changes against the one before it, file by file."""

    place = Place.DIFF

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
        if why is not None or id not in ("file", "blame"):
            return why
        file = self._file()
        if file is None:
            return f"no file is selected: {self.desk.key('down')} goes down to one"
        return _lineless(file) if id == "blame" else None

    def do_file(self) -> None:
        file = self._file()
        assert file is not None  # `blocked` asks first
        self._folded ^= {file.name}
        self.draw(select=f"{file.name}:0")

    def do_blame(self) -> None:
        file = self._file()
        assert file is not None  # `blocked` asks first
        self.app.push_screen(Blame(self.desk, self._release, file.name.removeprefix(BELOW)))


class Blame(Reading):
    """A file of a release: each line with the release that put it there; below, why those were made. Whose the selected
    line is stands at the bottom."""

    place = Place.BLAME
    empty = "…"

    def __init__(self, desk: Desk, release: Mapping[str, Any], path: str) -> None:
        super().__init__(desk)
        self._release = release
        self._path = path
        self._told: Mapping[str, Any] = {"lines": (), "releases": {}}
        self.whose = Line(style="dim")
        self.last = (self.whose,)

    async def load(self) -> None:
        path = f"/reef/releases/{segment(self._release['id'])}/blame"
        scenario = self._release["scenario"]
        self._told = await off_loop(self.desk.client.get, path, path=self._path, scenario=scenario)
        self.draw()
        self._name_whose()

    def lines(self, width: int) -> Sequence[Row]:
        put = self._told["releases"]
        rows = [Row("head", (inert(f"{self._release['id']} · {self._path}"),), "bold")]
        for n, line in enumerate(self._told["lines"]):
            release = put[line["release"]]
            rows += hanging(f"line:{n}", f"{decisions.short(release):<8}", line["text"], width, data=release)
        rows += [Row("", ("",))] if put else []
        for one in put.values():
            told = one_line(f"{decisions.by(one)}: {one['reason']}")
            rows += hanging(f"put:{one['id']}", f"{one['id']}  ", told, width, style="bold", data=one)
            rows += plain("\n".join(map(_said, one["said"])), width, name=f"said:{one['id']}/", data=one)
        return rows

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        super().on_row_list_moved(message)
        self._name_whose()

    def _name_whose(self) -> None:
        self.whose.show(left=_whose(self.about) if self.about else "")


def _lineless(file: FileDiff) -> str | None:
    """Why nothing can be said of a file's lines."""
    if file.name.startswith("weights/"):
        return f"{inert(file.name)} is weights, which have no lines"
    gone = file.lines[:1] and file.lines[0].startswith("deleted file")
    return f"{inert(file.name)} is gone in this release" if gone else None


def _whose(release: Mapping[str, Any]) -> str:
    """Who put it there: what a person said, where there is such a report; else why it was made."""
    told = [_words(one) for one in release["said"]] or [one_line(release["reason"])]
    return f"{decisions.short(release)}, {decisions.by(release)}: {'; '.join(told)}"


def _said(said: Mapping[str, Any]) -> str:
    return f"{'said':<10}{_words(said)}"


def _words(said: Mapping[str, Any]) -> str:
    score = "" if said["score"] is None else f" {said['score']:g}"
    return f"{said['kind']}{score} {one_line(said['id'])}: {one_line(said['text'])}"
