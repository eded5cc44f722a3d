"""Logs: live, sifted by level and words, other logs, bounded; with the daemon down, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from daemon.core.paths import Home
from reef_cli.tui.screens.logs import Logs
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/widgets/prompt.py",)

_LINES = """\
2026-01-31T11:58:00.000Z INFO reef.server: started, version 1
2026-01-31T11:59:00.000Z WARNING reef.jobs: job job_1 failed: no tasks \x1b[2J
2026-01-31T11:59:30.000Z ERROR reef.proxy: the provider broke off
Traceback (most recent call last):
  File "proxy.py", line 1
OSError: cut
2026-01-31T11:59:40.000Z INFO reef.models: smollm2 answers from now on, as it was asked to do by the person here
"""


@pytest.fixture
def log(reef_home: Home) -> Home:
    reef_home.prepare()
    reef_home.log.write_text(_LINES)
    return reef_home


@asynccontextmanager
async def opened(home: Home, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Seen]:
    """The dashboard on its logs; no daemon runs."""
    async with dashboard(home, size) as seen:
        await seen.press("5")
        await seen.shows("[5 logs]", "s starts it", "daemon · level all")
        yield seen


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(log: Home, size: tuple[int, int]) -> None:
    async with opened(log, size) as seen:
        await seen.shows("smollm2 answers")
        seen.golden(f"logs-{size[0]}x{size[1]}")


async def test_lines_come_live_across_a_rotation(log: Home) -> None:
    async with opened(log) as seen:
        await seen.shows("7 lines")
        with log.log.open("a") as file:
            file.write("2026-01-31T11:59:50.000Z INFO reef: one more\n")
        await seen.until(lambda: "one more" in seen.marked)
        log.log.rename(log.log.with_name("daemon.log.1"))
        log.log.write_text("2026-01-31T11:59:51.000Z INFO reef: after rotation\n")
        await seen.until(lambda: "after rotation" in seen.marked)
        await seen.shows("9 lines")
        await seen.press("f", "k")
        log.log.write_text("2026-01-31T11:59:51.000Z INFO reef: after rotation\nand on\n")
        await seen.shows("and on")
        assert "one more" in seen.marked  # it does not follow any more
        await seen.press("f")
        await seen.until(lambda: "and on" in seen.marked)


async def test_levels_and_words(log: Home) -> None:
    async with opened(log) as seen:
        await seen.shows("smollm2 answers")
        await seen.press("l", "l", "l")
        await seen.shows("level warning", "job_1 failed", "OSError: cut")
        assert "started" not in seen.screen
        await seen.press("l")
        await seen.shows("level error")
        assert "job_1" not in seen.screen
        await seen.press("l")
        await seen.shows("level all", "started")
        await seen.press("slash", *"JOBS q".replace(" q", ""))
        await seen.shows("/JOBS", "job_1 failed")
        await seen.until(lambda: "smollm2" not in seen.screen)
        await seen.press("q")  # a letter
        await seen.shows("no such line: l and / say which are shown")
        await seen.press("backspace", "enter", "k")
        await seen.shows("job_1 failed")
        await seen.press("slash", "escape")
        await seen.shows("smollm2 answers")
        assert "/JOBS" not in seen.screen


async def test_other_logs(log: Home) -> None:
    (log.logs / "engine.log").write_text("llama: a warning\n")
    folder = log.jobs / "job_7"
    folder.mkdir()
    (folder / "log").write_text("train: step 1\n")
    async with opened(log) as seen:
        await seen.press("tab")
        await seen.shows("engine · level all", "llama: a warning", "1 line")
        await seen.press("tab")
        await seen.shows("job_7 · level all", "train: step 1")
        (folder / "log").write_text("cut\n")
        await seen.shows("cut")
        await seen.press("tab")
        await seen.shows("daemon · level all", "smollm2 answers")


async def test_a_line_is_copied_whole(log: Home) -> None:
    async with opened(log, (60, 24)) as seen:
        await seen.shows("answers from now on")
        await seen.press("y")
        await seen.shows("sent to the terminal: 2026-01-31T11:59:40")


async def test_only_the_last_lines_are_held(log: Home) -> None:
    long = "x" * 10_000_000
    log.log.write_text("".join(f"line {n}\n" for n in range(20_000)) + long + "\n")
    async with opened(log) as seen:
        await seen.shows("5000 lines")
        logs = seen.panel
        assert isinstance(logs, Logs)
        assert len(logs.list.window.rows) == 5000
        assert max(len(row.data) for row in logs.list.window.rows) <= 2000
        await seen.press("g")
        await seen.until(lambda: "line 15" in seen.marked)


async def test_no_log_yet(reef_home: Home) -> None:
    async with opened(reef_home) as seen:
        await seen.shows("nothing logged yet: reef start")
