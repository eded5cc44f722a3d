"""Feedback from the dashboard: rate, note, clear, and take back what was done here. Nothing here waits.

What is said is shown as waiting at once, written to the outbox by one thread and sent by another; only when the daemon
has answered does it stop waiting. `undo` takes back only what this dashboard did, newest first, however many answers
one key was about, so that somebody else's rating made meanwhile stays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from daemon.core.client import Client, segment
from daemon.core.errors import ReefError, Unreachable
from daemon.core.paths import Home
from reef_cli import output
from reef_cli.outbox import Entry, Outbox, Report, Sent, last_answer
from reef_cli.tui.text import one_line, rating
from reef_cli.tui.turns import Turns

#: Longest wait for the disk when the dashboard ends.
_LEAVE_SECONDS: Final = 5.0
_PINNED_AT_ONCE: Final = 500
Row = Mapping[str, Any]


@dataclass(slots=True, eq=False)
class _Act:
    """One key press. ``word`` is shown while it waits, ``done`` and ``said`` are for the sentence about it."""

    word: str
    done: str
    said: str
    about: tuple[Report, ...] = ()
    undo: tuple[str, ...] = ()
    cleared: list[Report] = field(default_factory=list)
    clears: bool = False
    pins: bool | None = None
    changed: tuple[str, ...] = ()
    #: The sessions and receipts that show that it waits.
    keys: frozenset[str] = field(init=False)
    kept: bool = False

    def __post_init__(self) -> None:
        self.keys = frozenset(key for one in self.about for key in (one.session, one.receipt) if key)

    def whom(self) -> str:
        return str(self.about[0].receipt or "the last answer") if len(self.about) == 1 else f"{len(self.about)} answers"

    def back(self) -> str:
        many = max(len(self.about), len(self.changed)) > 1
        return f"z {'brings' if self.clears else 'takes'} {'them' if many else 'it'} back"


class Ratings:
    """Rows are records, or sessions: then the last answer of each is meant. ``tell`` takes a sentence about what
    became of something; it may be called from any thread."""

    def __init__(self, home: Home, client: Client, tell: Callable[[str], object]) -> None:
        self._client = client
        self._tell = tell
        self._outbox = Outbox(home)
        self._acts: list[_Act] = []
        self._open: list[_Act] = []
        #: Notes of this dashboard, the oldest first, those that were not sent as well.
        self.written: list[str] = []
        self._keeper = Turns("reef-keeper", self._broken)
        self._sender = Turns("reef-sender", self._broken)

    # -- what a person does -------------------------------------------------------------------------

    def rate_many(self, rows: Iterable[Row], score: float, metadata: Row | None = None) -> None:
        """1 is good, 0 is bad; ``metadata`` says how it was given where neither is meant."""
        about = tuple(_about(row, score=score, metadata=metadata or {}) for row in rows)
        word = rating(score, metadata)
        self._put(_Act(word, word, word, about), Entry(about))

    def note_many(self, rows: Iterable[Row], text: str) -> None:
        about = tuple(_about(row, feedback=text) for row in rows)
        self._put(_Act("note", "noted", one_line(text, 40), about), Entry(about))

    def notes(self, row: Row) -> list[str]:
        """The notes that stand on an answer, the oldest first. Blocking; raises ReefError."""
        receipt = row.get("receipt") or last_answer(self._client, str(row["id"]))["receipt"]
        reports = self._client.get(f"/reef/records/{segment(str(receipt))}")["reports"]
        shown = self.overlaid(str(receipt), reports)
        return [str(one["feedback"]) for one in shown if one["feedback"] and not one["undone_ns"]]

    def pin_many(self, sessions: Iterable[Row], *, pinned: bool) -> None:
        """Call sessions golden, or no longer. Needs the daemon."""
        ids = tuple(str(one["id"]) for one in sessions)
        act = _Act("pin", "", "", pins=pinned)
        self._acts.append(act)
        self._sender.do(lambda: self._pin(act, ids))

    def clear_many(self, rows: Iterable[Row]) -> None:
        """Take back every score that stands on the answers, whoever gave it; notes stay. Needs the daemon."""
        act = _Act("clear", "cleared", "", tuple(_about(row) for row in rows), clears=True)
        self._acts.append(act)
        self._open.append(act)
        self._keeper.do(lambda: self._sender.do(lambda: self._clear(act)))

    def undo(self) -> None:
        if not self._acts:
            self._tell("nothing was rated here yet; reef undo takes back what was said elsewhere")
            return
        act = self._acts.pop()
        if act.clears:
            self._keeper.do(lambda: self._sender.do(lambda: self._restore(act)))
            return
        if act.pins is not None:
            back = _Act("pin", "", "", pins=not act.pins)
            self._sender.do(lambda: self._pin(back, act.changed))
            return
        ids = tuple(one.id for one in act.about)
        self._put(_Act("undo", f"undone: {act.said} on", "", act.about, undo=ids), Entry(undo=ids), again=False)

    def resume(self) -> None:
        """Show what an earlier dashboard could not send."""
        self._keeper.do(self._resume)

    def wake(self) -> None:
        """The daemon answers: send what waits."""
        self._sender.do(self._flush)

    def close(self) -> None:
        """What was said until now is on disk when this returns."""
        self._keeper.stop(_LEAVE_SECONDS)
        self._sender.stop(0)

    # -- what is shown ------------------------------------------------------------------------------

    def pending(self, key: str) -> str:
        """What waits for the daemon about a session or a receipt: ``+ good …``; empty where nothing does."""
        act = next((act for act in reversed(self._open) if key in act.keys), None)
        return f"{act.word} …" if act else ""

    def overlaid(self, receipt: str, reports: Sequence[Row]) -> list[Row]:
        """An answer's reports with those that wait, marked ``waiting``, as are those that are being taken back."""
        shown = [dict(one) for one in reports]
        for act in [act for act in self._open if receipt in act.keys]:
            undone = set(act.undo)
            shown = [one | ({"undone_ns": 1, "waiting": True} if one["id"] in undone else {}) for one in shown]
            known = {one["id"] for one in shown}
            shown += [_shown(one) for one in act.about if one.receipt == receipt and _is_new(one, act, known)]
        return list(shown)

    # -- the threads --------------------------------------------------------------------------------

    def _resume(self) -> None:
        waiting = self._outbox.waiting()
        known = {one.id: one for entry in waiting for one in entry.reports}
        for entry in waiting:
            if entry.reports:
                first = entry.reports[0]
                word = rating(first.score, first.metadata) or "note"
                self._open.append(_Act(word, f"sent, {word} on", "", entry.reports, kept=True))
            if entry.undo:
                about = tuple(known[id] for id in entry.undo if id in known)
                self._open.append(_Act("undo", "sent, taken back on", "", about, undo=entry.undo, kept=True))
        if waiting:
            self._tell(f"{output.count(len(waiting), 'piece')} of feedback from before wait for the daemon")
            self._sender.do(self._flush)

    def _put(self, act: _Act, entry: Entry, *, again: bool = True) -> None:
        if again:
            self._acts.append(act)
        self._open.append(act)
        self._keeper.do(lambda: self._keep(act, entry))

    def _keep(self, act: _Act, entry: Entry) -> None:
        try:
            self._outbox.put(entry)
        except ReefError as error:
            self._drop(act)
            self._tell(f"not kept: {error.message} ({error.hint})")
            return
        act.kept = True
        self._sender.do(lambda: self._flush(act))

    def _flush(self, act: _Act | None = None) -> None:
        kept = [one for one in self._open if one.kept]
        try:
            self._outbox.flush(self._client, self._sent)
        except Unreachable:
            if act is not None and act in self._open:
                self._tell(f"{act.done} {act.whom()}: kept until the daemon is back")
        except ReefError as error:
            self._tell(f"{error.message}: it is kept, and tried again ({error.hint or 'reef doctor'})")
        else:
            for one in kept:
                if one in self._open:  # another process sent it
                    self._settled(one)

    def _sent(self, sent: Sent) -> None:
        stored = {one.id: one for one in sent.stored}
        undone = {str(one["id"]) for one in sent.undone}
        refused = {id for id, _ in sent.refused}
        for act in list(self._open):
            ids = set(act.undo) or {one.id for one in act.about}
            if ids & (undone if act.undo else stored.keys()):
                act.about = tuple(stored.get(one.id, one) for one in act.about)
                self._settled(act)
            elif ids & refused:
                self._drop(act)
        for _, error in sent.refused:
            self._tell(f"refused: {error.message}")

    def _settled(self, act: _Act) -> None:
        self._open.remove(act)
        self._tell(f"{act.done}: {act.whom()}; {act.back()}" if act in self._acts else f"{act.done} {act.whom()}")

    def _drop(self, act: _Act) -> None:
        for acts in (self._open, self._acts):
            if act in acts:
                acts.remove(act)

    def _clear(self, act: _Act) -> None:
        try:
            act.about = tuple(self._named(one) for one in act.about)
            for one in act.about:
                act.cleared += self._cleared(one)
        except ReefError as error:
            if not act.cleared:
                self._drop(act)
            self._tell(f"{error.message} ({error.hint})")
        else:
            if act.cleared:
                self._tell(f"cleared: {act.whom()}; {act.back()}")
            else:
                self._drop(act)
                self._tell(f"nothing to clear: {act.whom()} has no rating")
        finally:
            if act in self._open:
                self._open.remove(act)

    def _named(self, one: Report) -> Report:
        receipt = one.receipt or last_answer(self._client, one.session)["receipt"]
        return Report(one.scenario, one.session, str(receipt))

    def _cleared(self, one: Report) -> list[Report]:
        """What was taken back from an answer, as it can be said again."""
        found = []
        for row in self._client.get(f"/reef/records/{segment(str(one.receipt))}")["reports"]:
            if row["score"] is not None and not row["undone_ns"]:
                self._client.post("/reef/undo", {"report": row["id"]})
                again = {name: row[name] for name in ("score", "feedback", "metadata")}
                found.append(Report(one.scenario, one.session, one.receipt, **again))
        return found

    def _restore(self, act: _Act) -> None:
        if not act.cleared:
            self._tell("nothing was cleared, so nothing is brought back")
            return
        last = act.cleared[-1]
        word = rating(last.score, last.metadata)
        back = _Act(word, f"brought back: {word} on", "", tuple(act.cleared))
        self._open.append(back)
        self._keep(back, Entry(back.about))

    def _pin(self, act: _Act, sessions: Sequence[str]) -> None:
        """Bunches, as many as the daemon takes at once."""
        try:
            for start in range(0, len(sessions), _PINNED_AT_ONCE):
                some = list(sessions[start : start + _PINNED_AT_ONCE])
                told = self._client.post("/reef/pin", {"sessions": some, "pinned": act.pins})
                act.changed += tuple(told["changed"])
        except ReefError as error:
            if not act.changed:
                self._drop(act)
            self._tell(f"{error.message} ({error.hint})")
            return
        what = output.count(len(act.changed), "trace")
        done = f"{what} pinned as golden" if act.pins else f"{what} no longer pinned"
        self._tell(f"{done}; {act.back()}" if act in self._acts else done)

    def _broken(self, error: Exception) -> None:
        self._tell(f"unexpected {type(error).__name__}: {one_line(str(error), 200)}")


def _about(row: Row, **said: Any) -> Report:
    if "receipt" in row:
        return Report(str(row["scenario"]), str(row["session"]), str(row["receipt"]), **said)
    return Report(str(row["scenario"]), str(row["id"]), None, **said)


def _is_new(one: Report, act: _Act, known: set[str]) -> bool:
    return not act.undo and not act.clears and one.id not in known


def _shown(one: Report) -> dict[str, Any]:
    said = {"score": one.score, "feedback": one.feedback, "metadata": one.metadata}
    return {"id": one.id, "undone_ns": None, "waiting": True, **said}
