"""The command palette, what it does, and a command's own screen."""

import os
from pathlib import Path

import pytest

from daemon.core.paths import Home
from reef_cli.tui.keys import LISTS, Place
from reef_cli.tui.screens.command import CommandRun
from reef_cli.tui.settings import DEFAULTS, Settings, load
from reef_cli.tui.themes import style
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/screens/everywhere.py", "reef_cli/tui/screens/command.py")


async def opened(seen: Seen, key: str = "colon") -> None:
    await seen.until(lambda: seen.app.desk.lost is None)
    await seen.press(key)
    await seen.shows("Enter: do it")


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24), (120, 36)])
async def test_it_offers_everything(reef_home: Home, fake: FakeDaemon, width: int, height: int) -> None:
    async with dashboard(reef_home, (width, height)) as seen:
        await opened(seen)
        await seen.press(*"theme")
        await seen.shows("theme dark: light on dark")
        seen.golden(f"palette-theme-{width}x{height}")


async def test_a_key_s_action(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 4)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        await opened(seen, "ctrl+p")
        await seen.press(*"to the beg", "enter")
        await seen.until(lambda: "session 1" in seen.marked)
        await opened(seen)
        await seen.press(*"what learns now", "enter")
        await seen.shows("[3 jobs]")


async def test_what_cannot_be_done_now_says_why(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press(*"rate good")
        await seen.shows("not now: no trace is selected")
        await seen.press("enter")
        await seen.until(lambda: "Enter: do it" not in seen.screen)
        await seen.shows("no trace is selected")


async def test_choosing_and_leaving(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press(*"theme ")
        await seen.until(lambda: "> " in seen.screen and "theme dark" in chosen(seen))
        await seen.press("down")
        assert "theme light" in chosen(seen)
        await seen.press("ctrl+p")
        assert "theme dark" in chosen(seen)
        await seen.press("pagedown", "pageup", "ctrl+n", "backspace")
        await seen.press(*"xyzzy")
        await seen.shows("nothing is called that")
        await seen.press("enter")  # nothing to do
        await seen.shows("Enter: do it")
        await seen.press("escape")
        await seen.shows("nothing yet")
        await seen.press("j")  # the list has the focus again
        assert seen.app.focused is seen.panel.list


def chosen(seen: Seen) -> str:
    return next(line for line in seen.screen.splitlines() if line.startswith("│ > "))


async def test_a_theme_is_worn_and_kept(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(1, score=1.0), session(2)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 2" in seen.marked)
        await opened(seen)
        await seen.press(*"theme safe", "enter")
        await seen.shows("theme safe, from now on")
        assert reef_home.dashboard.read_text() == "theme: safe\n"
        strip = next(strip for strip in seen.app.screen._compositor.render_strips() if "+ good" in strip.text)
        colours = {segment.style.color for segment in strip if segment.style}
        assert style("safe", "good").color in colours


async def test_no_color_stays(reef_home: Home, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press(*"theme safe", "enter")
        await seen.shows("NO_COLOR is set")
        assert seen.app.theme == "ansi"
        assert not reef_home.dashboard.exists()


async def test_a_command_of_reef_says_what_it_says(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press(*"config validate /nowhere/x.yaml", "enter")
        await seen.shows("$ reef config validate /nowhere/x.yaml", "no configuration at /nowhere/x.yaml", "exit code 2")
        await seen.press("g", "G", "j", "k", "pagedown", "pageup")
        await seen.press("escape")
        await seen.shows("nothing yet")


async def test_leaving_ends_the_command(reef_home: Home, fake: FakeDaemon) -> None:
    reef_home.logs.mkdir(exist_ok=True)
    reef_home.log.write_text("a line of the log \x1b]0;owned\x07\n")
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: seen.app.desk.lost is None)
        others = children()
        await seen.app.push_screen(CommandRun(reef_home, ["logs", "-f"]))
        await seen.shows("a line of the log \\x1b]0;owned\\x07")
        running = children() - others
        assert running
        await seen.press("q")
        await seen.until(lambda: not running & children(), "the command's end")


def children() -> set[int]:
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return {int(pid) for pid in found.read_text().split()} if found.exists() else set()


async def test_hints_are_there_until_they_are_switched_off(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(1)]
    async with dashboard(reef_home, (40, 24), settings=DEFAULTS) as seen:
        await seen.until(lambda: "what was" in seen.marked)
        await seen.shows("Enter opens one, + - rate its last\nanswer, c says why; ? all keys, H no\nhints\n")
        await seen.pilot.resize_terminal(40, 10)  # too low for hints
        await seen.until(lambda: "hints" not in seen.screen)
    async with dashboard(reef_home, settings=DEFAULTS) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.shows("Enter opens one, + - rate its last answer, c says why; ? all keys, H no hints\n")
        await seen.press("H")
        await seen.shows("no more hints; H brings them back")
        assert "Enter opens one" not in seen.screen
    assert not load(reef_home).hints
    async with dashboard(reef_home, (120, 24), settings=load(reef_home)) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        assert "Enter opens one" not in seen.screen
        await seen.press("H")
        await seen.shows("hints are on", "Enter opens one")


async def test_y_sends_the_id_to_the_terminal(
    reef_home: Home, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TMUX", "STY", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: seen.app.desk.lost is None)
        await seen.press("y")
        await seen.shows("nothing is selected")
        fake.record(session(1))
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press("y")
        await seen.shows("sent to the terminal: ses_")
        assert seen.app.clipboard == fake.sessions[0]["id"]
        monkeypatch.setenv("TERM", "linux")
        await seen.press("y")
        await seen.shows("copied.txt")
        assert reef_home.copied.read_text() == fake.sessions[0]["id"]


async def test_ctrl_z_where_there_is_no_shell(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await seen.press("ctrl+z")
        await seen.shows("this terminal has no shell to go back to")


@pytest.mark.parametrize("place", list(LISTS))
async def test_each_list_has_its_hint(reef_home: Home, fake: FakeDaemon, place: Place) -> None:
    """With the keys as they are bound."""
    async with dashboard(reef_home, settings=Settings(keys={"help": ("E",)})) as seen:
        await seen.until(lambda: seen.app.desk.lost is None)
        await seen.press(str(list(LISTS).index(place) + 1))
        await seen.until(lambda: seen.panel.place == place)
        await seen.until(lambda: "E all keys" in seen.panel.hint.left)
        assert not seen.panel.hint.left.startswith("E all")
        assert "{" not in seen.panel.hint.left
