"""Hostile text on every screen and dialog is shown, inert; every size is survived."""

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rich.cells import cell_len
from textual.widgets import Input, TextArea

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.screens.command import CommandRun
from reef_cli.tui.settings import DEFAULTS
from reef_cli.tui.widgets.rows import RowList
from tests.fakes.dashboard import FakeDaemon, said, session
from tests.reef_cli.tui.seen import Seen, dashboard
from tests.reef_cli.tui.tour import MARKUP, hostile, strips, walk

#: Where at least the beginning of a text from outside is in sight.
SHOWING = {
    *("traces", "trace", "unfolded", "releases", "release", "diff", "jobs", "job", "models", "model", "logs"),
    *("stop in jobs", "note in traces", "command", "said", "banner"),
    *("raw", "response", "changes", "score in traces", "task in traces", "note on it", "task of it"),
}


def inert(seen: Seen, name: str) -> None:
    """No character that a terminal acts on; every line as wide as the terminal."""
    for strip in strips(seen):
        assert strip.text.isprintable(), (name, strip.text)
        assert cell_len(strip.text) == seen.app.size.width, (name, strip.text)


async def test_hostile_text_is_inert_everywhere(reef_home: Home, fake: FakeDaemon) -> None:
    """B221, B222, B224: an escaped bracket, an unclosed one, a path in brackets (`tests.reef_cli.tui.tour.MARKUP`)."""
    hostile(reef_home, fake)
    visited = set()
    async with dashboard(reef_home, (240, 60)) as seen:
        async for name in walk(seen, reef_home):
            visited.add(name)
            await seen.settle()
            inert(seen, name)
            if name in SHOWING:
                await seen.shows(*MARKUP)
    assert visited >= SHOWING


@pytest.mark.parametrize("size", [(40, 24), (80, 10), (20, 6), (8, 3)])
async def test_every_size_is_survived(reef_home: Home, fake: FakeDaemon, size: tuple[int, int]) -> None:
    hostile(reef_home, fake)
    async with dashboard(reef_home, size) as seen:
        async for name in walk(seen, reef_home):
            await seen.settle()
            inert(seen, name)


async def test_ten_lines_hide_nothing_that_matters(reef_home: Home, fake: FakeDaemon) -> None:
    """What is wrong, the selected line, what was said, help and the way out; in 40 columns, too."""
    fake.sessions = [session(n, title="x y z") for n in range(1, 50)]
    async with dashboard(reef_home, (40, 10), settings=DEFAULTS) as seen:
        await seen.until(lambda: "x y z" in seen.marked)
        fake.stop()
        await seen.shows("! the daemon")
        await seen.press("0")
        await seen.until(lambda: "x y z" in seen.marked)
        lines = seen.screen.splitlines()
        assert lines[0].startswith("Reef [1 traces]")
        assert lines[-1].endswith("? help  q quit")
        assert sum("x y z" in line for line in lines) >= 4
        assert any("the daemon" in line for line in lines[-3:-1])
        fake.start()


async def test_the_terminal_changes_while_traces_stream(reef_home: Home, fake: FakeDaemon) -> None:
    """The focus stays in the list, the end is followed, and what is read stays in sight."""
    fake.sessions = [session(n) for n in range(1, 200)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 199" in seen.marked)
        for n, size in enumerate(((40, 10), (240, 60), (80, 24), (20, 5), (120, 36), (41, 11), (80, 24))):
            fake.record(session(200 + n))
            await seen.pilot.resize_terminal(*size)
            inert(seen, str(size))
            assert seen.app.focused is seen.panel.list
        await seen.until(lambda: "session 206" in seen.marked)
        await seen.press("k", "k")
        await seen.until(lambda: "session 204" in seen.marked)
        for size in ((60, 9), (200, 50), (80, 24)):
            fake.record(session(300 + size[0]))
            await seen.pilot.resize_terminal(*size)
            inert(seen, str(size))
        await seen.until(lambda: "session 204" in seen.marked)
        await seen.shows("3 new")


@pytest.mark.parametrize(("place", "opens"), [("1", "c"), ("1", "slash"), ("5", "slash"), ("1", "colon")])
async def test_where_one_types_a_letter_is_a_letter(reef_home: Home, fake: FakeDaemon, place: str, opens: str) -> None:
    fake.sessions = [session(1)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press(place)
        await seen.until(lambda: isinstance(seen.app.focused, RowList))
        await seen.press(opens)
        await seen.until(lambda: isinstance(seen.app.focused, Input | TextArea))
        box = seen.app.focused
        await seen.press(*"qjk+-0cz1?")
        assert seen.app.focused is box
        assert isinstance(box, Input | TextArea)
        assert (box.value if isinstance(box, Input) else box.text) == "qjk+-0cz1?"
        await seen.press("escape")
        await seen.until(lambda: isinstance(seen.app.focused, RowList))
        assert fake.posts == []


async def test_a_click_leaves_the_list_its_focus(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 9)]
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 8" in seen.marked)
        for place in ((5, 0), (5, 22), (5, 23), (5, 3)):  # the bar, what was said, the keys, a row
            await seen.pilot.click(offset=place)
        await seen.until(lambda: "session 8" not in seen.marked)
        await seen.press("G")
        await seen.until(lambda: "session 8" in seen.marked)


async def test_brackets_come_letter_by_letter(reef_home: Home, fake: FakeDaemon) -> None:
    """B226: as a model writes them, half a tag at a time."""
    hostile(reef_home, fake)
    ((id, trace),) = fake.traces.items()
    entry = trace["records"][0]
    text = "yield from _flush(buffer) [1] [bold"
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        await seen.press("enter")
        for n in range(1, len(text) + 1):
            entry["answer"] = said("assistant", f"<{text[:n]}>")
            fake.emit("record", {**entry["record"], "session": id})
            if n % 5 == 0:
                await seen.shows(f"<{text[:n]}>")
                inert(seen, text[:n])


class Late(Client):
    """Answers to whoever opened something come once ``go_on`` is set."""

    held: ClassVar = ("/reef/traces/", "/reef/releases/r", "/reef/jobs/j")

    def __init__(self, path: Path, timeout: float, go_on: threading.Event) -> None:
        super().__init__(path, timeout=timeout)
        self.go_on = go_on
        self.asked: list[str] = []
        self.came: list[str] = []

    def get(self, path: str, /, **query: object) -> Any:
        self.asked.append(path)
        found = super().get(path, **query)
        if path.startswith(self.held):
            assert self.go_on.wait(60)
            self.came.append(path)
        return found


@pytest.mark.parametrize(("place", "held"), [("1", "/reef/traces/"), ("2", "/reef/releases/r"), ("3", "/reef/jobs/j")])
async def test_what_comes_after_a_screen_is_gone_harms_nothing(
    reef_home: Home, fake: FakeDaemon, place: str, held: str
) -> None:
    """BUGS B224: an answer for a screen that was left before it came. What is shown then stays as it is, and nothing
    more is asked for the other.
    """
    hostile(reef_home, fake)
    clients: list[Late] = []
    go_on = threading.Event()

    def connect(seconds: float) -> Late:
        clients.append(Late(reef_home.socket, seconds, go_on))
        return clients[-1]

    async with dashboard(reef_home, connect=connect) as seen:
        await seen.until(lambda: seen.app.desk.engine and seen.panel.list.window.rows)
        await seen.press(place)
        await seen.until(lambda: seen.panel.list.window.rows)
        here, before = seen.app.screen, seen.screen
        await seen.press("g", "enter")
        assert seen.app.screen is not here
        await seen.press("escape")
        await seen.settle()
        asked = [len(one.asked) for one in clients]
        go_on.set()
        await seen.until(lambda: any(path.startswith(held) for one in clients for path in one.came))
        await seen.settle()
        assert seen.app.screen is here
        assert seen.screen == before
        assert [one.asked[count:] for one, count in zip(clients, asked, strict=True)] == [[]] * len(clients)


async def test_whoever_leaves_at_once_is_left_alone(reef_home: Home, fake: FakeDaemon) -> None:
    """B224: screens that are opened and left while records come."""
    hostile(reef_home, fake)
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        for n in range(3):
            seen.type("enter", "escape", "2", "enter", "escape", "3", "enter", "escape", "1")
            fake.record(session(2 + n))
            await seen.settle()
        await seen.app.push_screen(CommandRun(reef_home, ["status"]))
        await seen.press("q")
        await seen.until(lambda: "session 4" in seen.screen)
        seen.type("colon", "escape", "question_mark", "escape", "j")
        await seen.settle()
        assert seen.app.is_running
