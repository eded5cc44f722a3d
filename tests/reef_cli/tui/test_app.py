"""The application: the daemon comes and goes, themes, leaving."""

import asyncio
import gc
import subprocess
import sys

import pytest
from rich.cells import cached_cell_len, cell_len
from textual.strip import Strip

from daemon.core.paths import Home
from daemon.core.paths import home as named_home
from reef_cli import diagnostics, lifecycle
from reef_cli.tui.themes import THEMES, Theme, style
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.tui.seen import dashboard

COVERS = ("reef_cli/tui/feed.py", "reef_cli/tui/messages.py", "reef_cli/tui/widgets/lines.py")


async def test_a_daemon_that_dies_and_comes_back(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 4)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        fake.stop()
        await seen.shows("! the daemon", "reef start")
        assert "session 3" in seen.marked  # what was read stays
        await seen.press("0")  # what others said of it is the daemon's to know
        await seen.shows("s starts it")
        assert "(Enter open)  (/ filter)  + good" in seen.screen
        fake.sessions.append(session(4))
        fake.start()
        await seen.until(lambda: "session 4" in seen.marked)
        assert "! the daemon" not in seen.screen
        assert "Enter open  / filter  + good" in seen.screen


async def test_s_starts_the_daemon(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    reef_home.config.write_text("server: {port: 0}\n")
    monkeypatch.setenv("REEF_HOME", str(reef_home.root))
    assert named_home() == reef_home
    async with dashboard(reef_home) as seen:
        await seen.shows("! the daemon is not running; s starts it, or: reef start")
        seen.golden("no-daemon-80x24")
        try:
            await seen.press("s")
            await seen.shows("the daemon runs", "nothing yet")
            await seen.until(lambda: "!" not in seen.screen.splitlines()[1])
            await seen.press("s")
            await seen.shows("the daemon is running")
        finally:
            lifecycle.stop_daemon(reef_home)


async def test_other_modes_load_when_they_are_shown(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 4)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        await seen.press("3")
        await seen.shows("[3 jobs]", "no job yet")
        fake.requests.clear()
        fake.record(session(9))
        fake.emit("job", {"id": "job_9", "state": "done"} | _JOB)
        await seen.until(lambda: any("/reef/jobs" in path for _, path, _ in fake.requests))
        assert not any("/reef/sessions" in path for _, path, _ in fake.requests)
        await seen.press("1")
        await seen.until(lambda: "session 9" in seen.marked)


async def test_what_nothing_is_seen_of_asks_for_nothing(reef_home: Home, fake: FakeDaemon) -> None:
    """A list under an opened trace; back in view it is as it is now."""
    fake.sessions = [session(n) for n in range(1, 4)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        await seen.press("enter")
        await seen.shows("Esc back")
        fake.requests.clear()
        fake.record(session(3, title="session 3 went on"))
        await seen.until(lambda: any("/reef/traces/" in path for _, path, _ in fake.requests))
        assert not any("/reef/sessions" in path for _, path, _ in fake.requests)
        await seen.press("escape")
        await seen.until(lambda: "went on" in seen.marked)


async def test_what_was_closed_is_forgotten(reef_home: Home, fake: FakeDaemon) -> None:
    """The lines that it was drawn as, too."""
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")

        async def help_comes_and_goes() -> int:
            for _ in range(5):
                await seen.press("question_mark")
                await seen.shows("one line down")
                await seen.press("escape")
                await seen.shows("nothing yet")
            gc.collect()
            return sum(isinstance(one, Strip) for one in gc.get_objects())

        first = await help_comes_and_goes()
        assert await help_comes_and_goes() <= first + 20


async def test_widths_of_what_was_shown_are_forgotten(reef_home: Home, fake: FakeDaemon) -> None:
    """Rich would keep a megabyte of lines."""
    fake.sessions = [session(1)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        for n in range(4000):
            cell_len(f"a line that was there once: {n}")
        fake.record(session(2))
        await seen.until(lambda: "session 2" in seen.marked)
        assert cached_cell_len.cache_info().currsize < 1500


_JOB = {"recipe": "sft", "scenario": "default", "error": None, "message": "", "ended_ns": 1, "started_ns": 1,
        "created_ns": 1, "progress": None, "outcome": None, "release_id": None}  # fmt: skip


async def test_ctrl_c_twice_leaves(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")
        await seen.press("ctrl+c")
        await seen.shows("ctrl+c again leaves")
        await seen.press("j")
        await seen.press("ctrl+c")
        assert seen.app.is_running  # it was not twice in a row
        await seen.press("ctrl+c")
        assert not seen.app.is_running


@pytest.mark.parametrize("theme", THEMES)
async def test_themes_show_the_same_text(reef_home: Home, fake: FakeDaemon, theme: Theme) -> None:
    fake.sessions = [session(1, score=1.0)]
    async with dashboard(reef_home, theme=theme) as seen:
        await seen.until(lambda: "> 11:59:00" in seen.marked)
        assert "+ good" in seen.marked


@pytest.mark.parametrize("theme", THEMES)
async def test_each_theme_looks_as_its_table_says(reef_home: Home, fake: FakeDaemon, theme: Theme) -> None:
    """Drawn: what is good, what is bad, what is wrong."""
    fake.sessions = [session(1, score=1.0), session(2, score=0.0), session(3)]
    async with dashboard(reef_home, theme=theme) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        fake.stop()
        await seen.shows("! the daemon")
        for text, role in (("+ good", "good"), ("- bad", "bad"), ("! the daemon", "error")):
            strip = next(strip for strip in seen.app.screen._compositor.render_strips() if text in strip.text)
            colours = {str(segment.style.color) for segment in strip if segment.style}
            assert str(style(theme, role).color) in colours, text
        fake.start()


async def test_without_colour(reef_home: Home, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: no colour reaches the terminal; the selection is a mark and reverse video."""
    monkeypatch.setenv("NO_COLOR", "1")
    fake.sessions = [session(1, score=1.0), session(2, score=0.0)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "- bad" in seen.marked)
        drawn, background = seen.app.screen._compositor.render_strips(), seen.app.screen.background_colors[1]
        strips = [strip.apply_filter(one, background) for strip in drawn for one in seen.app._filters[1:]]
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert {style.color.name for style in styles if style.color} <= {"default"}
        assert any(style.reverse for style in styles)


async def test_what_is_said_on_stderr_ends_no_dashboard(reef_home: Home, fake: FakeDaemon) -> None:
    """`s` sends what waits in the outbox, and says so as a command does."""
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")
        await asyncio.to_thread(diagnostics.say, "sent what waited for the daemon: 1 piece of feedback")
        assert "sent what" not in seen.screen


def test_the_first_paint_imports_only_what_it_shows() -> None:
    """A dialog, another screen or the daemon's own modules would cost each start."""
    code = "import sys, reef_cli.tui.app, reef_cli.tui.screens.traces; print(*sys.modules, sep='\\n')"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    screens = {name.rpartition(".")[2] for name in loaded if name.startswith("reef_cli.tui.screens.")}
    assert screens == {"everywhere", "panel", "rated", "traces", "work"}
    others = {"textual.widgets._text_area", "daemon.core.records", "reef_cli.tui.choices", "secrets", "yaml"}
    assert not others & loaded
