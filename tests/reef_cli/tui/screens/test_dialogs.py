"""Keys pressed faster than a dialog goes: it is left once, and what is below it stays."""

import pytest
from textual import events

from daemon.core.paths import Home
from reef_cli.tui.keys import Place
from reef_cli.tui.screens.panel import Panel
from tests.fakes.dashboard import FakeDaemon
from tests.reef_cli.tui.seen import Seen, dashboard
from tests.reef_cli.tui.tour import at, hostile, rows

_TYPED = {"enter": "\r", "escape": "\x1b", "colon": ":", "question_mark": "?", "slash": "/"}


def at_once(seen: Seen, *keys: str) -> None:
    """As a terminal sends what is pasted, or what a held key repeats: nobody waits for what one of them does."""
    for key in keys:
        event = events.Key(key, _TYPED.get(key, key))
        event.set_sender(seen.app)
        seen.app.post_message(event)


@pytest.mark.parametrize(
    "keys",
    [
        ("c", "x", "enter", "enter", "enter"),
        ("c", *["escape"] * 4),
        ("c", "c", "c", "escape", "escape"),
        ("colon", *["enter"] * 4),
        ("colon", *["escape"] * 4),
        ("question_mark", *["escape"] * 4),
        ("enter", "c", *["escape"] * 5),
        ("enter", "enter", "R", "d", *["escape"] * 6),
        ("enter", "slash", *["escape"] * 4),
        ("3", "x", "y", "y", "y", "1"),
        ("2", "enter", "d", *["escape"] * 5, "1"),
        ("v", "3", "3", "3", "escape"),
        ("t", *["escape"] * 4),
    ],
    ids=" ".join,
)
async def test_keys_that_come_at_once_end_nothing(reef_home: Home, fake: FakeDaemon, keys: tuple[str, ...]) -> None:
    hostile(reef_home, fake)
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: seen.app.desk.lost is None and rows(seen))
        for _ in range(3):
            at_once(seen, *keys)
            await seen.pilot.pause()
        while not isinstance(seen.app.screen, Panel):
            await seen.press("escape")
        at_once(seen, "escape", "escape", "1")
        await seen.until(lambda: at(seen, Place.TRACES))
        await seen.pilot.pause()
        assert len(seen.app.screen_stack) == 1
