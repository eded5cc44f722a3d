"""Feedback from the dashboard: rate, note, clear, and take back what was done here. Nothing here waits.

What is said is shown as waiting at once, written to the outbox by one thread and sent by another; only when the daemon
has answered does it stop waiting. `undo` takes back only what this dashboard did, newest first, however many answers
one key was about, so that somebody else's rating made meanwhile stays.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from daemon.core.client import Client, segment
from daemon.core.errors import ReefError, Unreachable
from daemon.core.paths import Home
from reef_cli import output
from reef_cli.outbox import Entry, Outbox, Sent
from reef_cli.tui import acts
from reef_cli.tui.acts import Act, Row, about
from reef_cli.tui.text import one_line, rating
from reef_cli.tui.turns import Turns

#: Longest wait for the disk when the dashboard ends.
_LEAVE_SECONDS: Final = 5.0


class Ratings:
    """Rows are records, or sessions: then the last answer of each is meant. ``tell`` takes a sentence about what
    became of something; it may be called from any thread. ``undo`` is the key that a person presses for it."""

    def __init__(self, home: Home, client: Client, tell: Callable[[str], object], undo: str = "z") -> None:
        self._client = client
        self._key = undo
        self._tell = tell
        self._outbox = Outbox(home)
        self._acts: list[Act] = []
        self._open: list[Act] = []
        #: Notes of this dashboard, the oldest first, those that were not sent as well.
        self.written: list[str] = []
        self._keeper = Turns("reef-keeper", self._broken)
        self._sender = Turns("reef-sender", self._broken)

    # -- what a person does -------------------------------------------------------------------------

    def rate_many(self, rows: Iterable[Row], score: float, metadata: Row | None = None) -> None:
        """1 is good, 0 is bad; ``metadata`` says how it was given where neither is meant."""
        reports = tuple(about(row, score=score, metadata=metadata or {}) for row in rows)
        word = rating(score, metadata)
        self._put(Act(word, word, word, reports), Entry(reports))

    def note_many(self, rows: Iterable[Row], text: str) -> None:
        reports = tuple(about(row, feedback=text) for row in rows)
        self._put(Act("note", "noted", one_line(text, 40), reports), Entry(reports))

    def notes(self, row: Row) -> list[str]:
        """The notes that stand on an answer, the oldest first. Blocking; raises ReefError."""
        return acts.notes(self._client, row, list(self._open))

    def clear_many(self, rows: Iterable[Row]) -> None:
        """Take back every score that stands on the answers, whoever gave it; notes stay. Needs the daemon."""
        act = Act("clear", "cleared", "", tuple(about(row) for row in rows))
        act.take_back = lambda: self._restore(act)
        self._acts.append(act)
        self._open.append(act)
        self._after(lambda: self._clear(act))

    def pin_many(self, sessions: Iterable[Row], *, pinned: bool) -> None:
        """Call sessions golden, or no longer: those that are not so yet."""
        if ids := tuple(str(one["id"]) for one in sessions if self.golden(one) is not pinned):
            self._pin(ids, "pinned as golden" if pinned else "no longer pinned", pinned=pinned)

    def made(self, task: str) -> None:
        """A task was added: `undo` removes it."""
        self._acts.append(Act("task", "task added", take_back=lambda: self._remove(task)))

    def undo(self) -> None:
        if not self._acts:
            self._tell("nothing is left to take back here; reef undo takes back what was said elsewhere")
            return
        act = self._acts.pop()
        if act.pins:
            word = "no longer pinned" if act.pinned else "pinned again"
            self._pin(act.pins, f"undone, {word}:", pinned=not act.pinned, again=False)
            return
        if act.take_back is not None:
            self._after(partial(self._try, act, act.take_back))
            return
        ids = tuple(one.id for one in act.about)
        self._put(Act("undo", f"undone: {act.said} on", "", act.about, undo=ids), Entry(undo=ids), again=False)

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

    def golden(self, session: Row) -> bool:
        """Whether it is pinned, or will be once all is sent that waits."""
        act = next((act for act in reversed(self._open) if session["id"] in act.pins), None)
        return bool(session.get("pinned")) if act is None else act.pinned

    def overlaid(self, receipt: str, reports: Sequence[Row]) -> list[Row]:
        """An answer's reports with those that wait, marked ``waiting``, as are those that are being taken back."""
        return acts.overlaid(list(self._open), receipt, reports)

    # -- the threads --------------------------------------------------------------------------------

    def _after(self, work: Callable[[], None]) -> None:
        """In the sender's thread, once what was said before is on disk and sent, or known to wait."""
        self._keeper.do(lambda: self._sender.do(work))

    def _resume(self) -> None:
        waiting = self._outbox.waiting()
        known = {one.id: one for entry in waiting for one in entry.reports}
        for entry in waiting:
            if entry.reports:
                first = entry.reports[0]
                word = rating(first.score, first.metadata) or "note"
                self._open.append(Act(word, f"sent, {word} on", "", entry.reports, kept=True))
            if entry.undo:
                about = tuple(known[id] for id in entry.undo if id in known)
                self._open.append(Act("undo", "sent, taken back on", "", about, undo=entry.undo, kept=True))
            if entry.pins:
                word, done = ("pin", "pinned as golden") if entry.pinned else ("unpin", "no longer pinned")
                pin = Act(word, f"sent, {done}:", pins=entry.pins, pinned=entry.pinned, kept=True)
                self._open.append(pin)
        if waiting:
            self._tell(f"{output.count(len(waiting), 'piece')} of feedback from before wait for the daemon")
            self._sender.do(self._flush)

    def _put(self, act: Act, entry: Entry, *, again: bool = True) -> None:
        if again:
            self._acts.append(act)
        self._open.append(act)
        self._keeper.do(lambda: self._keep(act, entry))

    def _keep(self, act: Act, entry: Entry) -> None:
        try:
            self._outbox.put(entry)
        except ReefError as error:
            self._drop(act)
            self._tell(f"not kept: {error.message} ({error.hint})")
            return
        act.kept = True
        self._sender.do(lambda: self._flush(act))

    def _flush(self, act: Act | None = None) -> None:
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
        pins = sent.pins  # an entry's, in the order of the key presses
        for act in list(self._open):
            if act.pins:
                if act.pins == pins:
                    self._settled(act)
                    pins = ()
                elif act.pins[0] in refused:
                    self._drop(act)
                continue
            ids = set(act.undo) or {one.id for one in act.about}
            if ids & (undone if act.undo else stored.keys()):
                if stored:
                    act.about = tuple(stored[one.id] for one in act.about if one.id in stored)
                self._settled(act)
            elif ids & refused:
                self._drop(act)
        if sent.refused:
            more = f", and {len(sent.refused) - 1} more" if len(sent.refused) > 1 else ""
            self._tell(f"refused: {sent.refused[0][1].message}{more}")

    def _settled(self, act: Act) -> None:
        self._open.remove(act)
        self._tell(
            f"{act.done}: {act.whom()}; {act.back(self._key)}" if act in self._acts else f"{act.done} {act.whom()}"
        )

    def _drop(self, act: Act) -> None:
        for known in (self._open, self._acts):
            if act in known:
                known.remove(act)

    def _clear(self, act: Act) -> None:
        try:
            act.about = tuple(acts.named(self._client, one) for one in act.about)
            for one in act.about:
                act.cleared += acts.clear(self._client, one)
        except ReefError as error:
            if not act.cleared:
                self._drop(act)
            self._failed(error)
        else:
            if act.cleared:
                self._tell(f"cleared: {act.whom()}; {act.back(self._key)}")
            else:
                self._drop(act)
                self._tell(f"nothing to clear: {act.whom()} has no rating")
        finally:
            if act in self._open:
                self._open.remove(act)

    def _restore(self, act: Act) -> None:
        if not act.cleared:
            self._tell("nothing was cleared, so nothing is brought back")
            return
        last = act.cleared[-1]
        word = rating(last.score, last.metadata)
        back = Act(word, f"brought back: {word} on", "", tuple(act.cleared))
        self._open.append(back)
        self._keep(back, Entry(back.about))

    def _pin(self, ids: tuple[str, ...], done: str, *, pinned: bool, again: bool = True) -> None:
        act = Act("pin" if pinned else "unpin", done, pins=ids, pinned=pinned)
        self._put(act, Entry(pins=ids, pinned=pinned), again=again)

    def _remove(self, task: str) -> None:
        self._client.delete(f"/reef/tasks/{segment(task)}")
        self._tell(f"task {task} is removed again")

    def _try(self, act: Act, work: Callable[[], object]) -> None:
        """What could not be taken back for want of a daemon can be once more."""
        try:
            work()
        except ReefError as error:
            if isinstance(error, Unreachable):
                self._acts.append(act)
            self._failed(error)

    def _failed(self, error: ReefError) -> None:
        self._tell(f"{error.message}{f' ({error.hint})' if error.hint else ''}")

    def _broken(self, error: Exception) -> None:
        self._tell(f"unexpected {type(error).__name__}: {one_line(str(error), 200)}")
