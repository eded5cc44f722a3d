"""Models: engines and files, one's facts, using another, what is being fetched."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests.fakes import gguf
from tests.fakes.daemon import running_daemon
from tests.fakes.dashboard import ENGINES, FakeDaemon, model
from tests.reef_cli.tui.seen import Seen, dashboard


@pytest.fixture
def models(fake: FakeDaemon) -> FakeDaemon:
    fake.models = [model("smollm2", active=True, loaded=True), model("qwen3\x1b[2J"), model("gemma")]
    return fake


@asynccontextmanager
async def opened(home: Home, size: tuple[int, int] = (80, 24), select: str = "") -> AsyncIterator[Seen]:
    """The dashboard on its models, the one with ``select`` in its line selected."""
    async with dashboard(home, size) as seen:
        await seen.shows("nothing yet", "embedded: ready")
        await seen.press("4")
        await seen.shows("[4 models]", "* ready")
        if select:
            await seen.press("g")
            await seen.select(select)
        yield seen


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, models: FakeDaemon, size: tuple[int, int]) -> None:
    models.adding = [{"source": "hf:owner/repo", "phase": "download", "done": 30_000_000, "total": 100_000_000}]
    async with opened(reef_home, size) as seen:
        await seen.shows("gemma")
        seen.golden(f"models-{size[0]}x{size[1]}")


async def test_an_engines_state_moves_without_a_request(reef_home: Home, models: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        models.requests.clear()
        loading = {"state": "loading", "progress": 0.4, "tokens_per_second": None, "cache_hit": None, "memory_mb": None}
        models.emit("engine", [ENGINES[0] | loading])
        await seen.shows("~ loading 40%", "     -      -        -")
        assert models.requests == []


async def test_enter_shows_all_about_one_live(reef_home: Home, models: FakeDaemon) -> None:
    async with opened(reef_home, select="embedded") as seen:
        await seen.press("enter")
        await seen.shows("tokens per second 45.3", "cache hit         0.62", "memory            512.0 MB")
        models.emit("engine", [ENGINES[0] | {"tokens_per_second": 12.5}])
        await seen.shows("tokens per second 12.5")
        await seen.press("u")
        await seen.shows("embedded is an engine: select a model")
        await seen.press("escape")
        await seen.select("gemma")
        await seen.press("enter")
        await seen.shows("size              145.0 MB (145000000 bytes)", "active            no")
        await seen.press("u", "y")
        await seen.shows("active            yes", "gemma answers from now on")
        await seen.press("q")
        await seen.shows("gemma              * answers")


async def test_using_another_asks_first(reef_home: Home, models: FakeDaemon) -> None:
    async with opened(reef_home, select="gemma") as seen:
        await seen.press("u")
        await seen.shows("Answer with gemma?")
        await seen.press("u", "enter")
        assert models.posts == []
        await seen.press("n")
        await seen.shows("nothing was changed")
        await seen.press("u", "y")
        await seen.shows("gemma answers from now on")
        await seen.until(lambda: "* answers" in seen.marked)
        assert models.posts == [("/reef/models/use", {"name": "gemma"})]
        await seen.press("u")
        await seen.shows("gemma answers already")


async def test_what_is_being_fetched_moves(reef_home: Home, models: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        models.adding = [{"source": "pypi:qwen", "phase": "download", "done": 1, "total": 2}]
        models.emit("model", {})
        await seen.shows("~ download 50%")
        await seen.select("pypi:qwen")
        await seen.press("y")
        await seen.shows("sent to the terminal: pypi:qwen")
        await seen.press("enter")
        await seen.shows("pypi:qwen is still being added")


async def test_none_yet_and_the_way_to_one(reef_home: Home) -> None:
    """A real daemon without a model."""
    with running_daemon(reef_home):
        async with dashboard(reef_home) as seen:
            await seen.press("4")
            await seen.shows("? missing", "no model yet", "reef models add default")
            await seen.press("G", "u")
            await seen.shows("no model is selected")


async def test_a_real_daemon_answers_with_another(reef_home: Home, tmp_path: Path) -> None:
    with running_daemon(reef_home) as daemon:
        for seed, name in enumerate(("first", "second")):
            (tmp_path / f"{name}.gguf").write_bytes(gguf.make(seed=seed))
        daemon.control("POST", "/reef/models", {"source": str(tmp_path / "first.gguf")})
        async with dashboard(reef_home) as seen:
            await seen.press("4")
            await seen.shows("first              * answers", ". asleep")
            daemon.control("POST", "/reef/models", {"source": str(tmp_path / "second.gguf")})
            await seen.shows("second             there")  # without a key: the daemon told
            await seen.select("second")
            await seen.press("u", "y")
            await seen.shows("second             * answers", "first              there")
        assert [model["active"] for model in daemon.get("/reef/models")["items"]] == [False, True]


async def test_without_a_daemon(reef_home: Home) -> None:
    async with dashboard(reef_home) as seen:
        await seen.press("4")
        await seen.shows("[4 models]", "! the daemon is not running; s starts it", "as soon as the daemon answers")
        await seen.press("u")
        await seen.shows("the daemon is not running: s starts it")
