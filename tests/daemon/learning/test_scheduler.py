"""When recipes start by themselves, and that nothing makes them loop; recipes are asked, never imported."""

import asyncio
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from daemon.core.errors import RecipeError
from daemon.core.learning import JobState
from daemon.core.rows import NewReport
from daemon.learning.catalogue import Catalogue
from daemon.learning.scheduler import Scheduler
from daemon.learning.stream import Stream
from daemon.store.instructions import NewInstruction
from tests.daemon.learning.conftest import Bench
from tests.fakes.exchanges import record, transcript, user
from tests.fakes.recipes import GOOD, hostile


class Ticks:
    """Stands where changes are told."""

    def __init__(self) -> None:
        self.version = 0
        self.looked_at = -1

    async def after(self, version: int, _seconds: float) -> int:
        self.looked_at = version
        while self.version <= version:
            await asyncio.sleep(0.02)
        return self.version


@asynccontextmanager
async def scheduling(bench: Bench, ticks: Ticks, manual: Collection[str] = (), **reef: Any) -> AsyncIterator[Scheduler]:
    async with bench.running() as jobs:
        stream = Stream(bench.store.learning, lambda _: ())
        catalogue = Catalogue(bench.home, bench.home.root)
        scheduler = Scheduler(
            bench.store.learning, jobs, stream,
            catalogue=catalogue, reef=reef, by_itself=lambda scenario: scenario not in manual,
        )  # fmt: skip
        task = asyncio.create_task(scheduler.run(ticks.after))
        try:
            yield scheduler
        finally:
            task.cancel()


def noted(bench: Bench, id: str, text: str = "be brief") -> None:
    receipt = record(bench.store, transcript([user(f"about {id}")], "ok")).receipt
    bench.store.report(NewReport(id, "default", feedback=text, references=(receipt,))).result(20)


async def looked(ticks: Ticks) -> None:
    """Tell of a change, and wait until it was looked at."""
    ticks.version += 1
    async with asyncio.timeout(30):
        while ticks.looked_at < ticks.version:
            await asyncio.sleep(0.02)


def jobs_of(bench: Bench) -> list[str]:
    return [row.id for row in bench.store.learning.jobs()[0]]


async def test_a_job_starts_with_enough_news_and_not_again_without(bench: Bench) -> None:
    recipe, ticks = hostile(bench.home.root, "fails", "raise RuntimeError('always')"), Ticks()
    noted(bench, "rep_0")
    async with scheduling(bench, ticks, recipe=recipe, batch_size=2):
        await looked(ticks)
        assert jobs_of(bench) == [], "one note is not enough"
        noted(bench, "rep_1")
        await looked(ticks)
        (id,) = jobs_of(bench)
        assert (await bench.over(id)).state is JobState.FAILED
        for _ in range(3):
            await looked(ticks)
        assert jobs_of(bench) == [id], "it failed, and nothing has come since"
        noted(bench, "rep_2")
        noted(bench, "rep_3")
        await looked(ticks)
        assert len(jobs_of(bench)) == 2


async def test_nothing_starts_while_a_job_of_the_recipe_is_open(bench: Bench) -> None:
    recipe, ticks = hostile(bench.home.root, "sleeps", "time.sleep(600)"), Ticks()
    noted(bench, "rep_0")
    async with scheduling(bench, ticks, recipe=recipe):
        await bench.until(lambda: jobs_of(bench))
        noted(bench, "rep_1")
        await looked(ticks)
        assert len(jobs_of(bench)) == 1


async def test_its_settings_come_from_the_configuration(bench: Bench) -> None:
    (bench.home.root / "mine.py").write_text(GOOD)
    ticks = Ticks()
    noted(bench, "rep_0")
    async with scheduling(bench, ticks, recipe="mine:MyRecipe", at_most=2) as scheduler:
        await bench.until(lambda: jobs_of(bench))
        assert bench.store.learning.jobs()[0][0].config == {"at_most": 2}
        assert scheduler.problem is None
        assert await scheduler.heeding() == "mine:MyRecipe"
        assert await scheduler.settings("playbook") == {}


async def test_a_recipe_that_is_not_there_is_a_problem_not_the_end(bench: Bench) -> None:
    ticks = Ticks()
    async with scheduling(bench, ticks, recipe="recipes.sao.recipe:SAORecipe", batch_size=1) as scheduler:
        assert "is being looked at" in str(scheduler.problem)
        await bench.until(lambda: "there is no module 'recipes.sao" in str(scheduler.problem))
        assert await scheduler.heeding() == "playbook"


async def test_without_a_recipe_nothing_runs_by_itself(bench: Bench) -> None:
    noted(bench, "rep_0")
    async with scheduling(bench, Ticks()) as scheduler:
        assert scheduler.problem is None
    assert jobs_of(bench) == []


async def test_an_instruction_that_a_killed_daemon_left_gets_its_job(bench: Bench) -> None:
    recipe = hostile(bench.home.root, "heeds", "pass")
    bench.store.learning.instruct(NewInstruction("ins_a", "default", "be brief", recipe)).result(20)
    async with scheduling(bench, Ticks()) as scheduler:
        (id,) = await bench.until(lambda: jobs_of(bench))
        assert (await bench.over(id)).recipe == recipe
        assert await scheduler.start("default", recipe) is not None


async def test_a_job_that_waits_already_will_do(bench: Bench) -> None:
    slow = hostile(bench.home.root, "slow", "time.sleep(600)")
    async with scheduling(bench, Ticks()) as scheduler:
        first = await scheduler.start("default", slow)
        assert first is not None
        await bench.until(lambda: bench.store.learning.job(first.id).state is JobState.RUNNING)
        second, third = await scheduler.start("default", slow), await scheduler.start("default", slow)
        assert second is not None
        assert second.id != first.id
        assert third == second


async def test_what_is_asked_for_and_what_starts_by_itself_are_one_run(bench: Bench) -> None:
    """Who brings an instruction has news for the scheduler before it has a job."""
    recipe, ticks = hostile(bench.home.root, "sleeps", "time.sleep(600)"), Ticks()
    async with scheduling(bench, ticks, recipe=recipe, batch_size=1) as scheduler:
        await looked(ticks)
        async with scheduler.turn:
            noted(bench, "rep_0")
            ticks.version += 1
            await bench.until(lambda: scheduler.turn._waiters)
            started = await scheduler.start("default", recipe)
        await looked(ticks)
        assert started is not None
        assert jobs_of(bench) == [started.id]


async def test_recipes_are_described_in_a_process_of_their_own(bench: Bench) -> None:
    (bench.home.root / "mine.py").write_text(GOOD)
    catalogue = Catalogue(bench.home, bench.home.root)
    told = await catalogue.describe("mine:MyRecipe", {"at_most": 7})
    assert told["config"]["at_most"] == 7
    assert "mine" not in sys.modules
    items = {item["name"]: item for item in await catalogue.all(["mine:MyRecipe", "gone:X"])}
    assert items["mine:MyRecipe"]["summary"] == "A note becomes a rule."
    assert "there is no module 'gone'" in items["gone:X"]["error"]["message"]


async def test_a_recipe_that_takes_the_process_down_is_told(bench: Bench) -> None:
    (bench.home.root / "dies.py").write_text("import os; os.write(2, b'goodbye'); os._exit(9)")
    with pytest.raises(RecipeError, match="cannot be asked: goodbye"):
        await Catalogue(bench.home, bench.home.root).describe("dies:X", {})


async def test_a_manual_scenario_waits_to_be_told(bench: Bench) -> None:
    (bench.home.root / "mine.py").write_text(GOOD)
    ticks, manual = Ticks(), {"default"}
    noted(bench, "rep_0")
    async with scheduling(bench, ticks, manual, recipe="mine:MyRecipe"):
        await looked(ticks)
        assert jobs_of(bench) == []
        manual.clear()
        await looked(ticks)
        assert len(jobs_of(bench)) == 1
