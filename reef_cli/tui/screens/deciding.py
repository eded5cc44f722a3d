"""Deciding about a release: approve, turn down, roll back, hold the clients at it. Each asks first, and only ``y`` is a
yes: they change what serves every agent. What can act by itself is read before it is approved.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType

from daemon.core import harness
from daemon.core.client import segment
from reef_cli import decisions
from reef_cli.tui.differences import FileDiff, by_file
from reef_cli.tui.screens.dialogs import Confirm
from reef_cli.tui.screens.help import Pages
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.reading import plain
from reef_cli.tui.screens.work import begin, off_loop
from reef_cli.tui.text import wrapped
from reef_cli.tui.window import Row

_OF_ONE: Final = ("card", "diff", "approve", "reject", "rollback", "hold")


class Acting(Pages[bool]):
    """What a candidate changes that can act by itself, and a question that only ``y`` affirms."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "affirm", show=False),
        Binding("n", "close", show=False),
    ]
    foot = "y: yes   Esc: no   j k: read on"

    def __init__(self, question: str, files: Sequence[FileDiff]) -> None:
        super().__init__(" ".join(question.splitlines()))
        self._files = files

    def rows(self, width: int) -> Sequence[Row]:
        found: list[Row] = []
        for file in self._files:
            head = wrapped(f"{file.name}  +{file.added} -{file.removed}", width)
            found += [Row(f"{file.name}:{n}", (part,), "bold") for n, part in enumerate(head)]
            found += plain("\n".join(file.lines), width, marked=True, name=f"{file.name}/")
        return found

    def action_affirm(self) -> None:
        self.dismiss(True)


class Deciding(Panel):
    """Deciding about the release that is selected or read."""

    def decided(self, release: Mapping[str, Any]) -> None:
        """What a decision made: a candidate that is approved gets a number, and with it another id."""

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is not None or id not in _OF_ONE:
            return why
        return _unfit(id, self.about) if self.about is not None else "no release is selected"

    def do_approve(self) -> None:
        begin(self, self._approve(self.about), group="approve")

    async def _approve(self, release: Mapping[str, Any]) -> None:
        """Ask, once it is known what it changes that can act by itself."""
        path, scenario = f"/reef/releases/{segment(release['id'])}", release["scenario"]
        acts = (await off_loop(self.desk.client.get, path, scenario=scenario))["acts"]
        diff = (await off_loop(self.desk.client.get, f"{path}/diff", scenario=scenario))["diff"] if acts else ""
        if self.app.screen is not self:  # the person went on
            return
        against = release["state"] == "rejected"
        verdict = decisions.verdict(release)
        warning = f"The gate did not accept it ({verdict}): it will be marked unproven.\n" if against else ""
        work = self._decision(release, "approve", {"scenario": scenario, **({"force": True} if against else {})})
        if acts:
            question = f"{warning}{release['id']}: {acts}. Release it to scenario {scenario}?"
            self.affirmed(Acting(question, acting(diff)), work)
        else:
            self.affirmed(Confirm(f"{warning}Release {release['id']} to scenario {scenario}?"), work)

    def do_reject(self) -> None:
        release = self.about
        body = {"scenario": release["scenario"]}
        self._ask(f"Turn {release['id']} down? It is kept, and can still be approved.", release, "reject", body)

    def do_rollback(self) -> None:
        release = self.about
        question = f"Roll scenario {release['scenario']} back to {release['id']}? It becomes a new release."
        body = {"scenario": release["scenario"], "to": release["id"]}
        self._ask(question, release, "rollback", body)

    def do_hold(self) -> None:
        release = self.about
        name, scenario = release["id"], release["scenario"]
        if release["pinned"]:
            self._ask(
                f"Let scenario {scenario}'s clients follow its head again?", release, "unpin", {"scenario": scenario}
            )
            return
        again = "" if release["head"] else f"Go back to {name}, which becomes a new release, and hold"
        question = f"{again or 'Hold'} scenario {scenario}'s clients {'there' if again else f'at {name}'}?"
        body = {"scenario": scenario, "release": name}
        self._ask(f"{question} Later releases are made, but not served.", release, "pin", body)

    def _ask(self, question: str, release: Mapping[str, Any], verb: str, body: Mapping[str, object]) -> None:
        self.affirmed(Confirm(question), self._decision(release, verb, body))

    def _decision(self, release: Mapping[str, Any], verb: str, body: Mapping[str, object]) -> Callable[[], str]:
        path = f"{segment(release['id'])}/{verb}" if verb in ("approve", "reject") else verb

        def work() -> str:
            told = self.desk.client.post(f"/reef/releases/{path}", body)
            if verb == "unpin":
                return f"unpin: {told['id']} serves"
            self.decided(told)
            if verb == "pin":
                return f"pin: clients are held at {told['id']}"
            return f"{verb}: {told['id']} is {told['state']} ({told['kind']})"

        return work


def _unfit(id: str, release: Mapping[str, Any]) -> str | None:
    """Why that cannot be done with this release."""
    state, name = release["state"], release["id"]
    if id == "approve" and state == "released":
        return f"{name} is released already"
    if id == "reject" and state != "pending":
        return f"{name} is {state}: only a pending one can be turned down"
    if id == "rollback" and state != "released":
        return f"{name} was never released: approve it instead"
    if id == "rollback" and release["head"]:
        return f"{name} is the head: select the one to go back to"
    if id == "hold" and state != "released":
        return f"{name} was never released: approve it first"
    return None


def acting(diff: str) -> list[FileDiff]:
    """The files of a release's diff that can act by themselves, and what is no known part of a release."""
    return [file for file in by_file(diff) if not _inactive(file.name)]


def _inactive(path: str) -> bool:
    entry = harness.entry(path.removeprefix(harness.BELOW)) if path.startswith(harness.BELOW) else None
    return path == harness.ROUTING or path.startswith("weights/") or (entry is not None and not entry.kind.executable)
