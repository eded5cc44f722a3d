"""What one key press of feedback is about, and what the daemon is asked for it. Blocking parts are for threads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daemon.core.client import Client, segment
from reef_cli import output
from reef_cli.outbox import Report, last_answer

Row = Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Act:
    """``word`` is shown while it waits, ``done`` and ``said`` are for the sentence about it.

    ``undo`` are the reports that it takes back, ``pins`` the sessions that it calls golden, or (not ``pinned``) no
    longer; ``take_back`` undoes what is neither.
    """

    word: str
    done: str
    said: str = ""
    about: tuple[Report, ...] = ()
    undo: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    pinned: bool = True
    take_back: Callable[[], object] | None = None
    #: Scores that were taken back, as they can be said again.
    cleared: list[Report] = field(default_factory=list)
    #: The sessions and receipts that show that it waits.
    keys: frozenset[str] = field(init=False)
    #: It is on disk.
    kept: bool = False

    def __post_init__(self) -> None:
        said = (key for one in self.about for key in (one.session, one.receipt) if key)
        self.keys = frozenset((*said, *self.pins))

    def whom(self) -> str:
        if self.pins:
            return output.count(len(self.pins), "trace")
        return str(self.about[0].receipt or "the last answer") if len(self.about) == 1 else f"{len(self.about)} answers"

    def back(self, key: str) -> str:
        """That ``key`` undoes it."""
        them = "it" if len(self.about or self.pins) == 1 else "them"
        return f"{key} {'brings' if self.cleared else 'takes'} {them} back"


def about(row: Row, **said: Any) -> Report:
    """A report on a record, or on a session's last answer."""
    if "receipt" in row:
        return Report(str(row["scenario"]), str(row["session"]), str(row["receipt"]), **said)
    return Report(str(row["scenario"]), str(row["id"]), None, **said)


def overlaid(acts: Sequence[Act], receipt: str, reports: Sequence[Row]) -> list[Row]:
    """An answer's reports with those that wait, marked ``waiting``, as are those that are being taken back."""
    shown: list[Row] = list(reports)
    for act in (act for act in acts if receipt in act.keys and act.take_back is None):
        shown = [{**one, "undone_ns": 1, "waiting": True} if one["id"] in act.undo else one for one in shown]
        known = {one["id"] for one in shown}
        if not act.undo:
            shown += [_shown(one) for one in act.about if one.receipt == receipt and one.id not in known]
    return shown


def _shown(one: Report) -> Row:
    said = {"score": one.score, "feedback": one.feedback, "metadata": one.metadata}
    return {"id": one.id, "undone_ns": None, "waiting": True, **said}


def named(client: Client, one: Report) -> Report:
    """The same with its receipt."""
    receipt = one.receipt or last_answer(client, one.session)["receipt"]
    return Report(one.scenario, one.session, str(receipt))


def notes(client: Client, row: Row, acts: Sequence[Act]) -> list[str]:
    """Notes that stand on an answer, the oldest first, those that wait included."""
    receipt = str(named(client, about(row)).receipt)
    shown = overlaid(acts, receipt, client.get(f"/reef/records/{segment(receipt)}")["reports"])
    return [str(one["feedback"]) for one in shown if one["feedback"] and not one["undone_ns"]]


def clear(client: Client, one: Report) -> list[Report]:
    """Take back the scores that stand on an answer; what was taken back, as it can be said again."""
    found = []
    for row in client.get(f"/reef/records/{segment(str(one.receipt))}")["reports"]:
        if row["score"] is not None and not row["undone_ns"]:
            client.post("/reef/undo", {"report": row["id"]})
            again = {name: row[name] for name in ("score", "feedback", "metadata")}
            found.append(Report(one.scenario, one.session, one.receipt, **again))
    return found
