"""A real store and real job processes, without a daemon around them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from daemon.core.config import LearningConfig
from daemon.core.learning import JobRow
from daemon.core.paths import Home
from daemon.core.releases import Candidate, GateResult, Policy, Release, ReleaseKind, ReleaseState, Verdict
from daemon.learning.jobs import Incumbent, Jobs, Wiring
from daemon.store.db import Store


@dataclass
class Published:
    """Stands where releases are published: by the verdict and the policy, once a job."""

    releases: dict[str, Release] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)

    async def publish(self, candidate: Candidate, gate: GateResult, policy: Policy) -> Release:
        self.candidates.append(candidate)
        accepted = ReleaseState.RELEASED if policy is Policy.AUTO else ReleaseState.PENDING
        state = accepted if gate.verdict is Verdict.ACCEPT else ReleaseState.REJECTED
        made = Release(
            f"r{len(self.releases) + 1}-0000000a", candidate.scenario, 1, ReleaseKind.LEARNED, candidate.parent, 0,
            candidate.reason, gate=gate, state=state,
        )  # fmt: skip
        return self.releases.setdefault(candidate.job, made)


@dataclass
class Bench:
    """Jobs that run, and what they told."""

    home: Home
    store: Store
    published: Published = field(default_factory=Published)
    told: list[JobRow] = field(default_factory=list)
    config: LearningConfig = field(default_factory=LearningConfig)

    @asynccontextmanager
    async def running(self, **changes: Any) -> AsyncIterator[Jobs]:
        wiring = Wiring(lambda _: Incumbent(), lambda: None, self.published.publish, self.told.append)
        jobs = Jobs(
            self.store.learning, self.home, wiring,
            config=replace(self.config, **changes), scenarios={}, beside=self.home.root,
        )  # fmt: skip
        task = asyncio.create_task(jobs.run())
        try:
            yield jobs
        finally:
            await jobs.close()
            task.cancel()

    async def over(self, id: str, seconds: float = 600.0) -> JobRow:
        """Wait until a job is over."""
        over: JobRow = await self.until(
            lambda: row if (row := self.store.learning.job(id)).state.over else None, seconds
        )
        return over

    async def until(self, true: Any, seconds: float = 600.0) -> Any:
        async with asyncio.timeout(seconds):
            while not (found := true()):
                await asyncio.sleep(0.02)
        return found


@pytest.fixture
def bench(reef_home: Home) -> Iterator[Bench]:
    store = Store.open(reef_home.database, durability="normal")
    yield Bench(reef_home, store)
    store.close()
