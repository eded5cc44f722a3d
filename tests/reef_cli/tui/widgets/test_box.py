"""A line to type into: a megabyte that is pasted is cut, and inert."""

import pytest
from textual import events
from textual.widgets import Input

from daemon.core.paths import Home
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.tui.seen import dashboard


@pytest.mark.parametrize("opens", [("slash",), ("colon",), ("enter", "slash"), ("5", "slash")])
async def test_a_megabyte_is_cut(reef_home: Home, fake: FakeDaemon, opens: tuple[str, ...]) -> None:
    fake.sessions = [session(1)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press(*opens)
        await seen.until(lambda: isinstance(seen.app.focused, Input))
        box = seen.app.focused
        assert isinstance(box, Input)
        for text in ("\x1b[2J\u202e" + "x" * 1_000_000, "y" * 1_000_000):
            seen.app.post_message(events.Paste(text))
            await seen.pilot.pause()
        await seen.until(lambda: len(box.value) == 2000)
        assert box.value.isprintable()
        await seen.press("z", "left", "backspace")
        assert len(box.value) == 1999
        await seen.press("enter", "escape", "escape")
        assert seen.app.is_running
