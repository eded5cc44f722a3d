"""Jobs: the list and its progress, the log, stopping one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from daemon.core.paths import Home
from reef_cli.tui.screens.jobs import Log
from tests.fakes.dashboard import NOW, FakeDaemon, job
from tests.reef_cli.tui.seen import Seen, dashboard


@pytest.fixture
def jobs(fake: FakeDaemon) -> FakeDaemon:
    half = {"step": "train", "done": 20, "total": 40, "note": ""}
    fake.jobs = [
        job(1, state="done", outcome="released", release_id="r3-00000003", ended_ns=NOW - 10**9, message="9 wins"),
        job(2, state="failed", error="the train environment is missing \x1b[2J", recipe="playbook", ended_ns=NOW),
        job(3, state="cancelled", scenario="work/api"),
        job(4, state="running", started_ns=NOW - 60 * 10**9, progress=half, message="step 20, loss 1.2"),
        job(5),
    ]
    return fake


@asynccontextmanager
async def opened(home: Home, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Seen]:
    """The dashboard on its jobs."""
    async with dashboard(home, size) as seen:
        await seen.shows("nothing yet", "embedded: ready")
        await seen.press("3")
        await seen.shows("[3 jobs]", ". queued")
        yield seen


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, jobs: FakeDaemon, size: tuple[int, int]) -> None:
    async with opened(reef_home, size) as seen:
        seen.golden(f"jobs-{size[0]}x{size[1]}")


async def test_progress_moves_without_a_request(reef_home: Home, jobs: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        await seen.press("j")
        await seen.shows("train [#####.....] 50 %")
        jobs.requests.clear()
        progress = {"step": "gate", "done": 9, "total": 10, "note": ""}
        jobs.emit("job", job(4, state="running", progress=progress, message="pair 9"))
        await seen.shows("gate [#########.] 90 %", "pair 9")
        assert "~ running" in seen.marked  # the selection stayed
        assert jobs.requests == []


async def test_a_new_job_appears(reef_home: Home, jobs: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        assert jobs.jobs is not None
        jobs.jobs.append(job(6, recipe="my-recipe"))
        jobs.emit("job", jobs.jobs[-1])
        await seen.shows("my-recipe")


async def test_enter_shows_the_log_live(reef_home: Home, jobs: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        await seen.press("j", "enter")
        await seen.shows("select: 36 records", "train: step 1", "job_4 · sft · scenario default · running")
        assert jobs.jobs is not None
        jobs.jobs[3]["log"].append("train: step 2 \x1b[31m")
        jobs.emit("job", jobs.jobs[3])
        await seen.until(lambda: "train: step 2 \\x1b[31m" in seen.marked)  # followed
        jobs.jobs[3]["log"].append("a library's own words")  # of which no event tells
        await seen.shows("a library's own words")
        await seen.press("q")
        await seen.shows("[3 jobs]", "> ~ running")


_CURVES = [
    {"name": "loss", "points": [[n + 1, 3.5 / (n + 1)] for n in range(14)]},
    {"name": "score: served", "points": [[n + 1, 0.25] for n in range(12)]},
    {"name": "score: candidate", "points": [[n + 1, n / 12] for n in range(12)]},
]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_curves_golden(reef_home: Home, jobs: FakeDaemon, size: tuple[int, int]) -> None:
    assert jobs.jobs is not None
    jobs.jobs[3]["curves"] = _CURVES
    async with opened(reef_home, size) as seen:
        await seen.press("j", "enter")
        await seen.shows("loss: 0.25", "score: served 0.25, candidate 0.917", "train: step 1")
        seen.golden(f"job-{size[0]}x{size[1]}")


async def test_curves_grow_as_the_job_tells(reef_home: Home, jobs: FakeDaemon) -> None:
    async with opened(reef_home, (60, 20)) as seen:
        await seen.press("j", "enter")
        await seen.shows("train: step 1")
        assert jobs.jobs is not None
        for count in (1, 2, 3):
            jobs.jobs[3]["curves"] = [{"name": "loss\x1b[2J", "points": _CURVES[0]["points"][:count]}]
            jobs.emit("job", jobs.jobs[3])
            if count > 1:  # one point is no curve
                await seen.shows(f"loss\\x1b[2J: {3.5 / count:.3g}")
        jobs.jobs[3]["curves"] += _CURVES[1:]
        jobs.emit("job", jobs.jobs[3])
        await seen.shows(".. candidate")
        await seen.pilot.resize_terminal(60, 12)
        await seen.until(lambda: ".. candidate" not in seen.screen)
        assert "train: step 1" in seen.screen


@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0], [1.0, 1.0 + 1e-15], [-1e9, 1e9], [1e-300, 2e-300], [5.0] * 3000],
    ids=lambda values: str(values[:2]),
)
async def test_any_numbers_can_be_drawn(reef_home: Home, jobs: FakeDaemon, values: list[float]) -> None:
    assert jobs.jobs is not None
    jobs.jobs[3]["curves"] = [{"name": "loss", "points": [[n, value] for n, value in enumerate(values)]}]
    async with opened(reef_home) as seen:
        await seen.press("j", "enter")
        await seen.shows(f"loss: {values[-1]:.3g}")
        assert isinstance(seen.panel, Log)


async def test_stopping_asks_first(reef_home: Home, jobs: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        await seen.press("j", "x")
        await seen.shows("Stop job_4 (sft, scenario default)?")
        await seen.press("x", "enter")
        assert jobs.posts == []
        await seen.press("y")
        await seen.shows("job_4 is cancelled")
        await seen.until(lambda: "x stopped" in seen.marked)
        await seen.press("x")
        await seen.shows("job_4 is over: cancelled")
        assert [path for path, _ in jobs.posts] == ["/reef/jobs/job_4/cancel"]


async def test_an_older_daemon(reef_home: Home, fake: FakeDaemon) -> None:
    fake.jobs = None
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")
        await seen.press("3")
        await seen.shows("this daemon does not know jobs yet: reef restart")
        await seen.press("x")
        await seen.shows("no job is selected")
