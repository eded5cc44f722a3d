"""Status: what runs, what is wrong and how to mend it, pausing what is recorded; with the daemon down, too."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from daemon.core.errors import NotFound
from daemon.core.paths import Home
from reef_cli.checks import Check
from reef_cli.tui.screens import status as screen
from tests.fakes.daemon import running_daemon
from tests.fakes.dashboard import FakeDaemon
from tests.reef_cli.tui.seen import Seen, dashboard

_MADE = [
    Check("python", "ok", "3.11.7 at /usr/bin/python3"),
    Check("model", "warn", "no model on this machine", "reef models add default"),
    Check("port", "fail", "4141 is held by another\x1b[2J", "stop that program, or set another server.port"),
]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What this machine has is no golden's business; the list grows by one each time the checks run."""
    runs: list[int] = []

    def everything(place: Home) -> Iterator[Check]:
        runs.append(len(runs))
        yield from _MADE

    monkeypatch.setattr(screen, "everything", everything)
    return runs


@asynccontextmanager
async def opened(home: Home, size: tuple[int, int] = (80, 24), troubles: str = "2 troubles") -> AsyncIterator[Seen]:
    async with dashboard(home, size) as seen:
        await seen.shows("nothing yet", "embedded: ready")
        await seen.press("6")
        await seen.shows("[6 status]", f"checks: {troubles}")
        yield seen


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, fake: FakeDaemon, checks: list[int], size: tuple[int, int]) -> None:
    async with opened(reef_home, size) as seen:
        await seen.press("g")
        seen.golden(f"status-{size[0]}x{size[1]}")


async def test_it_opens_at_its_first_line(reef_home: Home, fake: FakeDaemon, checks: list[int]) -> None:
    async with opened(reef_home) as seen:
        assert "> reef " in seen.marked


async def test_pausing_and_going_on(reef_home: Home, fake: FakeDaemon, checks: list[int]) -> None:
    async with opened(reef_home) as seen:
        await seen.press("P")
        await seen.shows("recording is paused; agents are served", "recording  paused until reef resume")
        await seen.press("P")
        await seen.shows("recording is on")
        await seen.until(lambda: "paused" not in seen.screen)
        assert [path for path, _ in fake.posts] == ["/reef/pause", "/reef/resume"]


async def test_checking_again(reef_home: Home, fake: FakeDaemon, checks: list[int]) -> None:
    async with opened(reef_home) as seen:
        assert len(checks) == 1
        await seen.press("r")
        await seen.until(lambda: len(checks) == 2)
        await seen.shows("checks: 2 troubles")


async def test_a_fix_is_copied_as_it_can_be_run(reef_home: Home, fake: FakeDaemon, checks: list[int]) -> None:
    async with opened(reef_home) as seen:
        await seen.select("fix: reef models")
        await seen.press("y")
        await seen.shows("sent to the terminal: reef models add default")


async def test_checks_that_cannot_go_on_can_be_made_again(
    reef_home: Home, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(place: Home) -> Iterator[Check]:
        yield _MADE[1]
        raise NotFound("no such thing", hint="reef restart")

    monkeypatch.setattr(screen, "everything", broken)
    async with opened(reef_home, troubles="1 trouble") as seen:
        await seen.shows("no such thing (reef restart)", "  r check")


async def test_a_daemon_that_goes(reef_home: Home, fake: FakeDaemon, checks: list[int]) -> None:
    async with opened(reef_home) as seen:
        fake.stop()
        await seen.shows("reef       is not running:", "next       reef start")
        await seen.until(lambda: len(checks) == 2)
        await seen.press("P")
        await seen.shows("s starts it")
        await seen.press("r")
        await seen.until(lambda: len(checks) == 3)
        fake.start()
        await seen.shows("pid 4711")


async def test_with_a_real_daemon_and_real_checks(reef_home: Home) -> None:
    with running_daemon(reef_home) as daemon:
        async with dashboard(reef_home, (100, 60)) as seen:
            await seen.press("6")
            await seen.shows(f"pid {daemon.process.pid}", "no model on this machine", "fix: reef models add default")
            await seen.shows("path ")
            await seen.press("P")
            await seen.shows("paused until reef resume", "recording is paused")
            assert daemon.get("/reef/status")["recording"]["state"] == "paused"
