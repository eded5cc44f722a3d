"""The dashboard in a test: run it without a terminal, press keys, wait for what it shows, read its screen as text."""

import asyncio
import os
import re
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from textual.events import Key
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
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
_LOOK_SECONDS = 0.005
#: So long a key waits for the requests that it sets off; some are never answered.
_KEY_SECONDS = 0.2
_VARYING = re.compile(r"\b\d{1,2} [A-Z][a-z]{2}\b *| *\b\d+\.\d s\b")
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
        """One after the other, each once what the one before has set off is done. Textual's own pilot looks for that
        at the processor's load, 40 ms and more for a key."""
        for key in keys:
            self.type(key)
            await self.settle(_KEY_SECONDS)

    def type(self, *keys: str) -> None:
        """All of them at once, as fast as a terminal pastes."""
        for key in keys:
            self.app.post_message(_event(key))

    async def settle(self, seconds: float = _PATIENCE_SECONDS) -> None:
        """Every message was handled, every request answered (or has taken so long), and the screen is drawn."""
        deadline = time.monotonic() + seconds
        rounds = 0
        while rounds < 3:  # the key to the focused widget, from there to its screen, and what that sends
            await self._draw()
            rounds += 1
            if time.monotonic() < deadline and (asked := self._asked()) | self._undrawn():
                rounds = 0
                await asyncio.sleep(_LOOK_SECONDS if asked else 0)

    async def rated(self) -> None:
        """All feedback so far was sent, or is known to wait."""
        done = threading.Event()
        self.app.desk.ratings._after(done.set)
        await self.until(done.is_set)
        await self.settle()

    def _asked(self) -> bool:
        return any(not one.is_finished for one in self.app.workers)

    def _undrawn(self) -> bool:
        front = self.app.screen
        waits = front._layout_required or front._scroll_required or front._repaint_required or front._dirty_widgets
        return bool(waits or front._callbacks or self.app._batch_count)

    async def _draw(self) -> None:
        """Messages that have come are handled, and what they changed is drawn, without waiting for Textual's timers."""
        await self.pilot._wait_for_screen()
        self.app.screen._on_timer_update()

    async def select(self, text: str, key: str = "j") -> None:
        """Press ``key`` until the selected line has ``text``."""
        for _ in range(200):
            if text in self.marked:
                return
            await self.press(key)
        raise AssertionError(f"no line with {text!r}; the screen:\n{self.screen}")

    async def until(self, condition: Callable[[], object], what: str = "it") -> None:
        """Wait on a condition, never on the clock; and for what else is on its way then."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not happen; the screen:\n{self.screen}"
            await self._draw()
            await asyncio.sleep(_LOOK_SECONDS)
        await self.settle(_KEY_SECONDS)

    async def shows(self, *texts: str) -> None:
        for text in texts:
            await self.until(lambda text=text: text in self.screen, f"{text!r} on the screen")  # type: ignore[misc]

    def golden(self, name: str, *, real: bool = False) -> None:
        """The screen equals ``tests/golden/tui/<name>.txt``; ``REEF_GOLDEN=1`` writes it. ``real``: the daemon is, so
        the day and how long an answer took are hidden."""
        path = GOLDEN / f"{name}.txt"
        shown = _VARYING.sub(lambda found: "~" * len(found[0]), self.screen) if real else self.screen
        if os.environ.get("REEF_GOLDEN"):
            path.write_text(shown, encoding="utf-8")
        assert shown == path.read_text(encoding="utf-8")


def _event(key: str) -> Key:
    name = key if len(key) > 1 or key.isalnum() else _character_to_key(key)
    try:
        char = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(name, name)))
    except KeyError:
        char = key if len(key) == 1 else None  # type: ignore[assignment]
    return Key(name, char)


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
