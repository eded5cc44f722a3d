"""The dashboard in a test: run it without a terminal, press keys, wait for what it shows, read its screen as text."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from daemon.core.paths import Home
from reef_cli.tui.app import Connect, Dashboard
from reef_cli.tui.desk import Clock
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.settings import Settings
from reef_cli.tui.themes import Theme
from tests.fakes.dashboard import NOW

GOLDEN = Path(__file__).parents[2] / "golden" / "tui"
_PATIENCE_SECONDS = 120.0
WITHOUT_HINTS = Settings(hints=False)


class Seen:
    """``screen`` is what a person sees, a line a row, without what stands invisible at their ends."""

    def __init__(self, app: Dashboard, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips) + "\n"

    @property
    def panel(self) -> Panel:
        front = self.app.screen
        assert isinstance(front, Panel)
        return front

    @property
    def marked(self) -> str:
        """The selected line."""
        return next((line for line in self.screen.splitlines() if line.startswith("> ")), "")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def select(self, text: str, key: str = "j") -> None:
        """Press ``key`` until the selected line has ``text``."""
        for _ in range(200):
            if text in self.marked:
                return
            await self.press(key)
        raise AssertionError(f"no line with {text!r}; the screen:\n{self.screen}")

    async def until(self, condition: Callable[[], object], what: str = "it") -> None:
        """Wait on a condition, never on the clock."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not happen; the screen:\n{self.screen}"
            await self.pilot.pause()
            await asyncio.sleep(0.005)

    async def shows(self, *texts: str) -> None:
        for text in texts:
            await self.until(lambda text=text: text in self.screen, f"{text!r} on the screen")  # type: ignore[misc]

    def golden(self, name: str) -> None:
        """The screen equals ``tests/golden/tui/<name>.txt``; ``REEF_GOLDEN=1`` writes it."""
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("REEF_GOLDEN"):
            path.write_text(self.screen, encoding="utf-8")
        assert self.screen == path.read_text(encoding="utf-8")


@asynccontextmanager
async def dashboard(
    home: Home,
    size: tuple[int, int] = (80, 24),
    *,
    theme: Theme = "ansi",
    settings: Settings = WITHOUT_HINTS,
    now: Clock = lambda: NOW,
    connect: Connect | None = None,
) -> AsyncIterator[Seen]:
    app = Dashboard(home, now=now, settings=replace(settings, theme=theme), connect=connect)
    async with app.run_test(size=size) as pilot:
        yield Seen(app, pilot)
