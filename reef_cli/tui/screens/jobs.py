"""Jobs: what learns now and what became of it, live; a job's log; cancelling."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.events import Resize

from daemon.core.client import segment
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.reading import Reading, plain
from reef_cli.tui.screens.work import off_loop
from reef_cli.tui.text import bar, inert, moment, one_line
from reef_cli.tui.widgets.curves import Curves
from reef_cli.tui.widgets.rows import Column
from reef_cli.tui.window import Row

#: The newest ones; older ones are for `reef jobs list --before`.
_MOST = 500
_LOG_SECONDS = 1.0
_MARKS = {
    "queued": ". queued",
    "running": "~ running",
    "done": "* done",
    "failed": "! failed",
    "cancelled": "x stopped",
}
_STYLES = {"running": "live", "failed": "error", "cancelled": "dim"}
_OVER = {"done", "failed", "cancelled"}


class _Stopping(Panel):
    """Stopping the job that is selected or read."""

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is not None or id not in ("log", "cancel"):
            return why
        job = self.about
        if job is None:
            return "no job is selected"
        if id == "cancel" and job["state"] in _OVER:
            return f"{job['id']} is over: {_ended(job)}"
        return None

    def do_cancel(self) -> None:
        job = self.about
        path = f"/reef/jobs/{segment(job['id'])}/cancel"

        def work() -> str:
            told = self.desk.client.post(path, {})
            return f"{told['id']} is {told['state']}"

        question = (
            f"Stop {job['id']} ({job['recipe']}, scenario {job['scenario']})? What it made so far is not released."
        )
        self.confirm(question, work)


class Jobs(_Stopping):
    place = Place.JOBS
    columns = (
        Column("state", 9),
        Column("recipe", 12),
        Column("scenario", 12, least=90),
        Column("when", 8, least=60),
        Column("progress", 24, least=70),
        Column("last words"),
    )
    empty = 'no job yet: reef recipes run playbook, or reef evolve "…"'

    async def load(self) -> None:
        told = await off_loop(self.desk.client.get, "/reef/jobs", limit=_MOST)
        self.list.all([_row(job, self.desk.now()) for job in told["items"]])
        self.foot.refresh()

    def heard(self, events: Sequence[Event]) -> None:
        """A job's progress is in the event itself; only a job that is not listed yet is asked for."""
        jobs = {str(event.data["id"]): event.data for event in events if event.name == "job"}
        rows = [_row(job, self.desk.now()) for job in jobs.values()]
        if any(self.list.window.index(row.id) is None for row in rows):
            self.reload.ask()
        elif rows:
            self.list.change(lambda window: window.update(rows))
            self.foot.refresh()

    def do_log(self) -> None:
        self.app.push_screen(Log(self.desk, self.about))


class Log(Reading, _Stopping):
    """A job's facts, its curves and the last lines it said."""

    place = Place.JOB
    follow = True
    empty = "…"

    def __init__(self, desk: Desk, job: Mapping[str, Any]) -> None:
        super().__init__(desk)
        self._job = job
        self.curves = Curves()
        self.above = (self.curves,)

    async def load(self) -> None:
        self._job = await off_loop(self.desk.client.get, f"/reef/jobs/{segment(self._job['id'])}")
        self._plot()
        self.draw()
        self.foot.refresh()

    def on_mount(self) -> None:
        self.set_interval(_LOG_SECONDS, self._look)

    def _look(self) -> None:
        """A process that prints tells nobody."""
        if self._job["state"] == "running" and self.desk.lost is None and self.is_current:
            self.reload.ask()

    def _plot(self) -> None:
        self.curves.show(self._job.get("curves", ()), *self.size)

    def on_resize(self, event: Resize) -> None:
        self._plot()

    def lines(self, width: int) -> Sequence[Row]:
        job = self._job
        facts = [job["id"], job["recipe"], f"scenario {job['scenario']}", _ended(job), _progress(job)]
        log = job.get("log") or []
        text = "\n".join(
            [
                " · ".join(filter(None, facts)),
                *([f"error: {job['error']}"] if job["error"] else [str(job["message"])] if job["message"] else []),
                "",
                *log,
            ]
        )
        return plain(text, width)

    def heard(self, events: Sequence[Event]) -> None:
        if any(event.name == "job" and event.data["id"] == self._job["id"] for event in events):
            self.reload.ask()

    @property
    def about(self) -> Mapping[str, Any]:
        return self._job


def _row(job: Mapping[str, Any], now_ns: int) -> Row:
    state = job["state"]
    words = job["error"] or job["message"] or ""
    cells = (
        _MARKS.get(state, state),
        inert(job["recipe"]),
        inert(job["scenario"]),
        moment(job["ended_ns"] or job["started_ns"] or job["created_ns"], now_ns),
        _progress(job),
        one_line(f"{_ended(job)}: {words}" if state in _OVER and words else words or _ended(job)),
    )
    return Row(job["id"], cells, _STYLES.get(state, ""), data=job)


def _progress(job: Mapping[str, Any]) -> str:
    progress = job["progress"]
    if not progress or job["state"] in _OVER:
        return ""
    return f"{inert(progress['step'])} {bar(progress['done'], progress['total'])}".rstrip()


def _ended(job: Mapping[str, Any]) -> str:
    """What it came to, or that it has not yet."""
    words = [str(job["outcome"] or job["state"]), *([str(job["release_id"])] if job["release_id"] else [])]
    return inert(" ".join(words))
