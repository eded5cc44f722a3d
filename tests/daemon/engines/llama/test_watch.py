"""What counts as stuck: beats that are missing, or one thing that never ends; never an idle worker."""

import asyncio

from daemon.engines.llama.watch import Patience, Watch


async def watched(*, busy: bool, steps: list[float], says: bool = True) -> list[str]:
    """What was said while these beats came in, then none for a while; ``says``: something is to be said."""
    told: list[str] = []
    watch = Watch(Patience(beat=0.02, missed=3, step=1.0), told.append)
    watch.start(lambda: busy)
    for step in steps:
        watch.heard(step)
        await asyncio.sleep(0.005)
    async with asyncio.timeout(60):
        while says and not told:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # and nothing more
    watch.stop()
    return told


async def test_silence_while_there_is_work_is_said_once() -> None:
    [told] = await watched(busy=True, steps=[])
    assert "no sign of life" in told


async def test_an_idle_worker_owes_nothing() -> None:
    assert await watched(busy=False, steps=[], says=False) == []


async def test_a_step_without_end_is_a_hang_though_the_process_lives() -> None:
    told = await watched(busy=False, steps=[0.0, 0.5, 1.5])
    assert told == ["the engine's process hung for 2 s in one step and was ended"]
