"""What learns inside a running daemon, put together: the stream, the jobs, and when they start by themselves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from daemon.core.config import Config, ScenarioConfig
from daemon.core.learning import JobRow
from daemon.core.paths import Home
from daemon.core.releases import Candidate, GateResult, Policy, Release
from daemon.engines.base import LoraFile
from daemon.learning.catalogue import Catalogue
from daemon.learning.jobs import Incumbent, Jobs, Wiring
from daemon.learning.scheduler import Scheduler
from daemon.learning.stream import Stream
from daemon.server.answers import As
from daemon.server.events import Changes
from daemon.store.db import Store


@dataclass(frozen=True, slots=True)
class Seams:
    """What learning needs of what serves: a scenario's head, its id and its weights, publishing, the model in use (its
    sha256), the prompts of tasks. All but ``publish`` may block.
    """

    incumbent: Callable[[str], Incumbent]
    head: Callable[[str], str]
    head_lora: Callable[[str], LoraFile | None]
    publish: Callable[[Candidate, GateResult, Policy], Awaitable[Release]]
    model: Callable[[], str | None]
    held_out: Callable[[str], Collection[str]]
    #: Whether a scenario's recipe starts by itself when there is news.
    by_itself: Callable[[str], bool]
    #: What is different for one.
    scenarios: Mapping[str, ScenarioConfig]


@dataclass(slots=True)
class LearningSide:
    stream: Stream
    jobs: Jobs
    catalogue: Catalogue
    scheduler: Scheduler
    seams: Seams
    #: Adapters that the engine has checked for a job, by path, so that it is asked once each.
    checked: dict[Path, LoraFile] = field(default_factory=dict)
    #: How the job that runs is answered, decided once: an agent's next request must not change it half way.
    like: dict[str, As] = field(default_factory=dict)


@asynccontextmanager
async def learning(
    home: Home, config: Config, *, store: Store, changes: Changes, config_path: Path | None, seams: Seams
) -> AsyncIterator[LearningSide]:  # fmt: skip
    """Everything running; stopped, jobs kept for the next daemon, on the way out."""
    beside = None if config_path is None else config_path.absolute().parent

    def changed(row: JobRow) -> None:
        changes.tell("job", row)

    stream = Stream(store.learning, seams.held_out)
    catalogue = Catalogue(home, beside)
    jobs = Jobs(
        store.learning, home, Wiring(seams.incumbent, seams.model, seams.publish, changed),
        config=config.learning, scenarios=seams.scenarios, beside=beside,
    )  # fmt: skip
    reef: Mapping[str, object] = config.reef
    scheduler = Scheduler(store.learning, jobs, stream, catalogue=catalogue, reef=reef, by_itself=seams.by_itself)
    tasks = [asyncio.create_task(jobs.run()), asyncio.create_task(scheduler.run(changes.after))]
    try:
        yield LearningSide(stream, jobs, catalogue, scheduler, seams)
    finally:
        tasks[1].cancel()
        await jobs.close()
        tasks[0].cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
