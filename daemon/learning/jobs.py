"""Jobs: a queue of recipe runs, one at a time, each in a process of its own that may die at any moment.

What becomes of a job is on disk before anyone is told. A job whose process was killed, or whose daemon was, starts
again with the same id and goes on from its files; one that gets no further three times in a row has failed. Only here
does a job's result become a release, and doing that twice gives the same one.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from daemon.core.config import LearningConfig, ScenarioConfig
from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.ids import new_id
from daemon.core.learning import JobRow, JobState, Outcome, Progress
from daemon.core.paths import Home
from daemon.core.releases import Candidate, GateResult, Policy, Release, Verdict
from daemon.learning import taint
from daemon.learning.attempt import TEXT_MOST, Attempt
from daemon.learning.process import MARK, Ended, environment, last_lines, module
from daemon.store.jobs import NewJob
from daemon.store.learning import Learning
from recipes.directory import JobDirectory, Result, Spec
from recipes.gate.judge import holds
from recipes.gate.statistics import spent

_log = logging.getLogger("reef.jobs")

_STARTS: Final = 3
#: How long a candidate counts as a try at its scenario's gate tasks.
_TRIES_NS: Final = 30 * 86_400 * 1_000_000_000
_TRIES_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Incumbent:
    """What a scenario serves when a job begins: None is the base. ``harness`` are its files by path."""

    release: Release | None = None
    harness: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wiring:
    """What jobs need of the rest of the daemon. ``incumbent`` and ``model`` (sha256) may block; ``publish`` takes a
    candidate through to its release, pending or rejected ones included, once a job, and raises Conflict when the head
    has moved.
    """

    incumbent: Callable[[str], Incumbent]
    model: Callable[[], str | None]
    publish: Callable[[Candidate, GateResult, Policy], Awaitable[Release]]
    changed: Callable[[JobRow], None]


class Jobs:
    """Use from the event loop alone. ``run`` until it is cancelled; then `close`."""

    def __init__(
        self, store: Learning, home: Home, wiring: Wiring, *,
        config: LearningConfig, scenarios: Mapping[str, ScenarioConfig], beside: Path | None,
    ) -> None:  # fmt: skip
        self._store = store
        self._home = home
        self._wiring = wiring
        self._config = config
        self._scenarios = scenarios
        self._environment = environment(home, beside)
        self._queue: deque[str] = deque()
        self._wake = asyncio.Event()
        self._current: Attempt | None = None
        self._closing = False

    # -- what people ask for ------------------------------------------------------------------------

    async def submit(self, scenario: str, recipe: str, config: Mapping[str, Any]) -> JobRow:
        """Queue a run; durable when this returns."""
        row = await asyncio.wrap_future(self._store.create(NewJob(new_id("job"), scenario, recipe, config)))
        self._queue.append(row.id)
        self._wake.set()
        self._wiring.changed(row)
        return row

    async def cancel(self, id: str) -> JobRow:
        """End it and all its processes. Raises Conflict for one that is over or is being published."""
        row = await asyncio.to_thread(self._store.job, id)
        run = self._current
        if run is None or run.id != id:
            return await self._over(row, JobState.CANCELLED)
        if run.settling:
            raise Conflict(f"job {id} is being published", hint=f"reef jobs show {id}")
        run.cancelled = True
        await run.stop()
        await run.ended.wait()
        return await asyncio.to_thread(self._store.job, id)

    def directory(self, id: str) -> JobDirectory:
        return JobDirectory(self._home.jobs / id)

    def is_running(self, id: str) -> bool:
        return self._current is not None and self._current.id == id

    def log(self, id: str, lines: int = 200) -> list[str]:
        return last_lines(self.directory(id).log, lines)

    # -- the queue ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Resume what a daemon before left, then run whatever is queued, one at a time."""
        left = await asyncio.to_thread(self._store.open_jobs)
        self._queue.extend(row.id for row in left if row.id not in self._queue)
        await asyncio.to_thread(self._tidy, {row.id for row in left})
        while True:
            while self._queue:
                await self._one(self._queue.popleft())
            self._wake.clear()
            await self._wake.wait()

    def _tidy(self, left: Collection[str]) -> None:
        """What a daemon before was killed over: jobs that were over, with their large files."""
        with contextlib.suppress(OSError):  # one that cannot be read stops no job: the next that uses it says so
            for folder in self._home.jobs.iterdir():
                directory = JobDirectory(folder)
                if folder.name not in left and (directory.work.exists() or directory.adapter.parent.exists()):
                    directory.tidy()

    async def close(self) -> None:
        """Stop the process that runs; its job goes on with the next daemon."""
        self._closing = True
        if (run := self._current) is not None:
            await run.stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(run.ended.wait(), 10)

    async def _one(self, id: str) -> None:
        run = self._current = Attempt(id, self.directory(id).log)
        try:
            row = await asyncio.to_thread(self._store.job, id)
            if not row.state.over and not self._closing:
                await self._attempt(row, run)
        except ReefError as error:
            await self._failed(id, error.message)
        except OSError as error:  # the disk is full, a folder is not ours
            await self._failed(id, f"{error.strerror or error}: {error.filename or self._home.jobs}")
        except Exception as error:  # the edge: the next job must run
            _log.exception("job %s", id)
            await self._failed(id, f"an internal error: {type(error).__name__}: {error}")
        finally:
            self._current = None
            run.ended.set()

    async def _attempt(self, row: JobRow, run: Attempt) -> None:
        directory = self.directory(row.id)
        spec = await asyncio.to_thread(self._prepared, row, directory)
        result = await asyncio.to_thread(directory.result)
        if result is None:
            row = await self._begun(row, directory)
            if run.cancelled:
                await self._over(row, JobState.CANCELLED)
                return
            hours = max(0.0, self._config.job_hours * 3600 - (time.time_ns() - (row.started_ns or 0)) / 1e9)
            told = asyncio.create_task(run.tell(self._change))
            try:
                ended = await run.child.run(
                    [*module("recipes.run"), str(directory.root)], {**self._environment, MARK: row.id}, directory.root,
                    until=time.monotonic() + hours,
                )  # fmt: skip
            finally:
                told.cancel()
            result = await asyncio.to_thread(directory.result)
            if run.cancelled or result is None or ended.code != 0:
                await self._without_result(row, run, ended)
                return
        run.settling = True
        await self._settle(row, run, spec, result)

    def _prepared(self, row: JobRow, directory: JobDirectory) -> Spec:
        """The job's spec, fixed at its first start."""
        if (spec := directory.spec()) is None:
            served = self._wiring.incumbent(row.scenario)
            spec = Spec(
                row.id, row.scenario, row.recipe, row.config, served.release, served.harness,
                alpha=self._alpha(row), lost_allowed=self._config.lost_allowed, model=self._wiring.model(),
            )  # fmt: skip
            directory.write_spec(spec)
        return spec

    def _alpha(self, row: JobRow) -> float:
        """The error rate for the n-th candidate that a scenario's tasks judge within 30 days: those before it were
        tries, too, whatever became of them.
        """
        rows, _ = self._store.jobs(scenario=row.scenario, limit=_TRIES_MOST)
        since = time.time_ns() - _TRIES_NS
        tries = (one for one in rows if one.id != row.id and one.created_ns > since)
        return spent(self._config.alpha, 1 + sum(self.directory(one.id).was_judged() for one in tries))

    async def _begun(self, row: JobRow, directory: JobDirectory) -> JobRow:
        """Count the start. Raises ReefError when the ones before led nowhere."""
        mark = await asyncio.to_thread(directory.mark)
        stand = await asyncio.to_thread(self._store.stand, row.id)
        stalled = stand.stalled + 1 if mark == stand.mark and row.attempts else 1
        if stalled > _STARTS:
            raise ReefError(f"its process was ended {_STARTS} times without getting any further: {row.message}")
        return await self._change(
            row.id, state=JobState.RUNNING, started_ns=row.started_ns or time.time_ns(), attempts=row.attempts + 1,
            mark=mark, stalled=stalled,
        )  # fmt: skip

    async def _without_result(self, row: JobRow, run: Attempt, ended: Ended) -> None:
        if run.cancelled:
            await self._over(row, JobState.CANCELLED)
        elif self._closing:  # no fault of its own
            stand = await asyncio.to_thread(self._store.stand, row.id)
            await self._change(row.id, stalled=max(0, stand.stalled - 1))
        elif ended.late:
            await self._failed(row.id, f"it had not finished after {self._config.job_hours:g} hours")
        elif ended.broken is not None:
            await self._failed(row.id, ended.broken)
        elif run.error is not None:
            await self._failed(row.id, run.error)
        elif ended.code < 0:
            await self._change(row.id, message=f"its process was ended by signal {-ended.code}")
            self._queue.appendleft(row.id)
        else:
            words = next((line for line in reversed(self.log(row.id)) if line.strip()), "")
            said = f": {words.strip()[:TEXT_MOST]}" if words else ""
            await self._failed(row.id, f"it ended with exit code {ended.code} and no result{said}")

    # -- what becomes of it -------------------------------------------------------------------------

    async def _settle(self, row: JobRow, run: Attempt, spec: Spec, result: Result) -> None:
        ended = {"ended_ns": time.time_ns(), "state": JobState.DONE}
        if result.candidate is None:
            message = result.reason or run.message or row.message
            await self._done(row.id, **ended, outcome=Outcome.NOTHING, message=message[:TEXT_MOST])
            return
        if result.gate is None:
            raise ReefError("its candidate was not judged")
        await self._change(row.id, progress=Progress("publish"))
        candidate = await asyncio.to_thread(self._own, result.candidate, row, spec)
        gate, policy = result.gate, self._policy(row.scenario)
        alpha = await asyncio.to_thread(self._alpha, row)  # not the spec's, which lay in the job's own folder
        if gate.verdict is Verdict.ACCEPT and not holds(gate, alpha):
            raise ReefError(f"{gate.wins} wins and {gate.losses} losses are no acceptance at {alpha:g}")
        if gate.verdict is Verdict.ACCEPT and policy is Policy.AUTO:
            words = await asyncio.to_thread(taint.quoted, self._store, spec.harness, candidate.harness)
            if words is not None:
                held = f'{gate.reason}; it waits for you, since a tool or a file said the same: "{words}…"'
                gate, policy = replace(gate, reason=held), Policy.REVIEW
        release = await self._wiring.publish(candidate, gate, policy)
        outcome = Outcome(release.state)
        if outcome is Outcome.REJECTED and gate.verdict is Verdict.INCONCLUSIVE:
            outcome = Outcome.INCONCLUSIVE
        await self._done(row.id, **ended, outcome=outcome, release_id=release.id, message=gate.reason[:TEXT_MOST])

    def _own(self, candidate: Candidate, row: JobRow, spec: Spec) -> Candidate:
        """The candidate with what is the daemon's to say: whose it is, and what it used up. Not by the spec on disk,
        which the job could have written over."""
        directory = self.directory(row.id)
        claimed = self._store.claimed(row.id)
        return replace(
            candidate, scenario=row.scenario, parent=spec.parent, recipe=row.recipe, job=row.id,
            records=claimed.records, instructions=claimed.instructions,
            lora=None if candidate.lora is None else str(directory.adapter),
            peft=None if candidate.peft is None else str(directory.peft),
        )  # fmt: skip

    def _policy(self, scenario: str) -> Policy:
        own = self._scenarios.get(scenario, ScenarioConfig()).policy
        return Policy(own or self._config.policy)

    async def _done(self, id: str, **changes: object) -> None:
        await self._change(id, **changes)
        await asyncio.to_thread(self.directory(id).tidy)

    async def _failed(self, id: str, reason: str) -> None:
        _log.warning("job %s failed: %s", id, reason)
        with contextlib.suppress(Conflict, NotFound):
            await self._over(await asyncio.to_thread(self._store.job, id), JobState.FAILED, reason)

    async def _over(self, row: JobRow, state: JobState, reason: str | None = None) -> JobRow:
        over = await self._change(row.id, state=state, ended_ns=time.time_ns(), error=reason)
        await asyncio.to_thread(self.directory(row.id).tidy)
        return over

    async def _change(self, id: str, **changes: object) -> JobRow:
        row = await asyncio.wrap_future(self._store.change(id, **changes))
        self._wiring.changed(row)
        return row
