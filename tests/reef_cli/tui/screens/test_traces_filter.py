"""Filtering and sorting the list of traces: applied while it is typed, the last one wins, the list stays virtual."""

import asyncio
from functools import partial

import pytest
from textual.events import Paste

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.screens.traces import Traces
from reef_cli.tui.widgets.filter import Filter
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.commands.conftest import Served, served  # noqa: F401  (a fixture)
from tests.reef_cli.tui.seen import Seen, dashboard

HOSTILE = "ZLEXCOUNT z [b + [/ [/a0/tests/x] [bold red]x[/] \x1b[31m \u202egnp"


def listed(seen: Seen) -> list[str]:
    panel = seen.panel
    assert isinstance(panel, Traces)
    return [row.data["title"] for row in panel.list.window.rows]


def selected(seen: Seen, title: str) -> bool:
    row = seen.panel.list.selected
    return row is not None and row.data["title"] == title


async def opened(seen: Seen) -> None:
    await seen.until(lambda: listed(seen))


@pytest.fixture
def mixed(fake: FakeDaemon) -> FakeDaemon:
    """A thousand, of which every tenth is a bug."""
    fake.sessions = [session(n, title=f"{'bug' if n % 10 == 0 else 'task'} number {n}") for n in range(1, 1001)]
    return fake


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, mixed: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen)
        await seen.until(lambda: seen.app.desk.engine)
        await seen.press("slash")
        await seen.shows("words, or agent:pi")
        await seen.settle()
        seen.golden(f"traces-filter-empty-{size[0]}x{size[1]}")
        await seen.press(*"bug")
        await seen.shows("100 fit")
        await seen.settle()
        seen.golden(f"traces-filter-{size[0]}x{size[1]}")


async def test_it_is_applied_while_typing_and_kept_with_enter(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"bug")
        await seen.until(lambda: len(listed(seen)) == 100)
        assert "bug number 1000" in seen.marked
        await seen.press("q", "g", "1", "space")  # letters here, no keys
        await seen.shows("no trace fits; Esc shows all of them")
        await seen.press(*["backspace"] * 4, "enter")
        await seen.until(lambda: len(listed(seen)) == 100)
        await seen.press("k")
        await seen.until(lambda: "bug number 990" in seen.marked)
        assert "bug" in seen.screen.splitlines()[1]  # what it is filtered by stays in sight
        await seen.press("escape")
        await seen.until(lambda: seen.panel.list.window.total == 1000)
        assert "bug" not in seen.screen.splitlines()[1]


async def test_esc_in_the_line_takes_it_back(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"bug")
        await seen.until(lambda: len(listed(seen)) == 100)
        await seen.press("escape")
        await seen.until(lambda: seen.panel.list.window.total == 1000)
        await seen.press("k")
        await seen.until(lambda: "number 999" in seen.marked)


async def test_the_last_one_wins_and_one_is_asked_at_a_time(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        mixed.requests.clear()
        await seen.press("slash", *"task number 77", *["backspace"] * 2, *"123")
        await seen.until(lambda: listed(seen) == ["task number 123"])
        asked = [path for _, path, _ in mixed.requests if "q=" in path]
        assert len(asked) <= 6
        assert "number+123" in asked[-1]


async def test_a_wrong_query_is_named_and_keeps_the_last_good_result(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"bug")
        await seen.until(lambda: len(listed(seen)) == 100)
        await seen.press("home", *"colour:")
        await seen.shows("no field 'colour' (there are agent, model)")
        assert len(listed(seen)) == 100
        mixed.record(session(2000, title="bug number 2000"))
        await seen.until(lambda: "bug number 2000" in listed(seen))  # it goes on as it was
        await seen.press(*["delete"] * 3, *["backspace"] * 7, *"task")
        await seen.until(lambda: "task number 999" in seen.marked)
        assert "no field" not in seen.screen


async def test_esc_takes_off_what_was_refused(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"colour:red", "enter")
        await seen.shows("/ colour:red", "no field 'colour'")
        await seen.press("escape")
        await seen.until(lambda: "colour" not in seen.screen)


async def test_what_was_kept_comes_back(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        line = seen.app.screen.query_one(Filter)
        for text in ("bug", "task", "bug"):
            await seen.press("slash", *["backspace"] * 9, *text, "enter")
        await seen.press("slash", *["backspace"] * 9, "up")
        assert line.value == "bug"
        await seen.press("up")
        assert line.value == "task"
        await seen.press("up", "down")
        assert line.value == "bug"
        await seen.press("down")
        assert line.value == ""
        await seen.press("up", "enter")
        await seen.until(lambda: len(listed(seen)) == 100)


async def test_it_stays_virtual(reef_home: Home, fake: FakeDaemon) -> None:
    """Of any number of matches only what is in view is asked for, from either end."""
    fake.sessions = [session(n, title=f"{'bug' if n % 2 else 'task'} {n}") for n in range(1, 10_001)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        fake.requests.clear()
        await seen.press("slash", *"bug", "enter")
        await seen.shows("100+ fit")
        for _ in range(30):
            await seen.press("ctrl+u")
        await seen.until(lambda: "bug 9" in seen.marked)
        assert len(listed(seen)) <= 600
        await seen.press("g")
        await seen.until(partial(selected, seen, "bug 1"))
        for n in range(40):
            await seen.press("ctrl+d")
            await seen.until(partial(selected, seen, f"bug {2 * 9 * (n + 1) + 1}"))
        assert len(listed(seen)) <= 600
        await seen.press("G")
        await seen.until(partial(selected, seen, "bug 9999"))
        assert sum(rows for _, _, rows in fake.requests) < 3000


async def test_short_pages_are_gone_on_from(reef_home: Home, fake: FakeDaemon) -> None:
    """What fits lies far below, further than the daemon looks for one page."""
    fake.sessions = [session(n, title=f"{'rare' if n in (40, 50, 900) else 'task'} {n}") for n in range(1, 2001)]
    fake.looked_at = 100
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"rare", "enter")
        await seen.until(lambda: listed(seen) == ["rare 40", "rare 50", "rare 900"])
        await seen.shows("3 fit")
        fake.sessions += [session(n, title="not asked for") for n in range(2001, 2501)]
        fake.record(session(3001, title="rare 3001"))
        await seen.until(lambda: listed(seen) == ["rare 40", "rare 50", "rare 900", "rare 3001"])
        await seen.press("k")
        fake.requests.clear()
        fake.sessions += [session(n, title="not asked for") for n in range(3002, 3502)]
        fake.record(session(4000, title="rare 4000"))
        await seen.until(lambda: listed(seen)[-1] == "rare 4000")  # there is room for it
        assert len(fake.requests) < 20  # what was looked at is not looked at again
        assert len(listed(seen)) == 5
        assert "rare 900" in seen.marked


async def test_what_fits_and_is_new_is_counted(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"bug", "enter")
        await seen.until(lambda: len(listed(seen)) == 100)
        await seen.press("k")
        for n in range(2001, 2004):
            mixed.record(session(n, title="task, not asked for"))
        mixed.record(session(2004, title="bug number 2004"))
        await seen.shows("↓ 1 new (f)")
        assert "bug number 990" in seen.marked
        await seen.press("f")
        await seen.until(lambda: "bug number 2004" in seen.marked)
        assert "new (f)" not in seen.screen


async def test_hostile_text_is_text_in_the_line(reef_home: Home, mixed: FakeDaemon) -> None:
    mixed.sessions[-1]["title"] = HOSTILE
    async with dashboard(reef_home, (220, 24)) as seen:
        await opened(seen)
        await seen.shows("ZLEXCOUNT z [b + [/ [/a0/tests/x] [bold red]x[/]")
        await seen.press("slash")
        line = seen.app.screen.query_one(Filter)
        line.box.insert_text_at_cursor(HOSTILE)
        await seen.shows("no trace fits")
        assert "[b + [/ [/a0/tests/x] [bold red]x[/] \\x1b[31m \\u202egnp" in seen.screen.splitlines()[1]
        assert "\x1b" not in seen.screen
        assert "\u202e" not in seen.screen
        seen.panel.say(f"said: {HOSTILE}")
        await seen.shows("said: ZLEXCOUNT z [b + [/ [/a0/tests/x] [bold red]x[/] \\x1b[31m")
        await seen.press("escape")
        await seen.until(lambda: seen.panel.list.window.total == 1000)
        await seen.press("c")
        await seen.shows("Note on the last answer of: ZLEXCOUNT z [b +")


async def test_sorted_the_most_stands_last(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n, prompt_tokens=n * 37 % 101 * 100, title=f"of {n * 37 % 101}") for n in range(1, 101)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("o")
        await seen.shows("by tokens")
        await seen.until(lambda: seen.marked.endswith("of 100"))
        await seen.press("k")
        await seen.until(lambda: seen.marked.endswith("of 99"))
        fake.record(session(500, prompt_tokens=10**6, title="of very many"))
        await seen.shows("by tokens · ↓ 1 new (f)")
        await seen.press("f")
        await seen.until(lambda: seen.marked.endswith("of very many"))
        await seen.press("g")
        await seen.until(lambda: seen.marked.endswith("of 1"))
        for order in ("cost", "latency", "rating"):
            await seen.press("o")
            await seen.shows(f"by {order}")
        await seen.press("o")
        await seen.until(lambda: "by " not in seen.screen.splitlines()[-2])
        await seen.press("o", "escape")
        await seen.until(lambda: seen.panel.list.window.counted)


async def test_a_filter_is_not_sorted_and_says_so(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("o")
        await seen.shows("by tokens")
        await seen.press("slash", *"bug", "enter")
        await seen.until(lambda: len(listed(seen)) == 100)
        assert "by tokens" not in seen.screen
        await seen.press("o")
        await seen.shows("what a filter finds is in the order of activity; Esc shows all")
        await seen.press("escape", "escape")
        await seen.shows("all of them are shown, and none is marked")


async def test_fields_on_the_real_daemon(served: Served) -> None:  # noqa: F811
    receipt = await asyncio.to_thread(partial(served.ask, "filtered by its fields", scenario="tui/filter"))
    await asyncio.to_thread(served.ask, "another one")
    Client(served.home.socket).post("/reef/report", {"score": 0.0, "references": [receipt]}, scope="tui/filter")
    async with dashboard(served.home, (120, 24)) as seen:
        await opened(seen)
        await seen.press("slash", *"scenario:tui/filter score:bad tokens:>1 since:1h kind:main", "enter")
        await seen.until(lambda: listed(seen) == ["filtered by its fields"])
        await seen.shows("1 fit")
        await seen.press("slash", *" status:fail")
        await seen.shows("status:fail is not known (status: one of ok, error, incomplete, cancelled, failed)")
        assert listed(seen) == ["filtered by its fields"]
        await seen.press(*"ed")
        await seen.shows("no trace fits")
        await seen.press("escape", "o", "o", "o", "o")
        await seen.shows("by rating")
        await seen.until(lambda: "filtered by its fields" in listed(seen))


async def test_leaving_while_it_is_typed(reef_home: Home, mixed: FakeDaemon) -> None:
    """What is still asked for touches no screen that is gone."""
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("slash", *"bug", "ctrl+c", "ctrl+c")
        await seen.until(lambda: not seen.app.is_running)


async def test_what_is_pasted_is_inert(reef_home: Home, mixed: FakeDaemon) -> None:
    async with dashboard(reef_home, (120, 24)) as seen:
        await opened(seen)
        await seen.press("slash")
        seen.app.post_message(Paste(f"{HOSTILE}\n and another line"))
        await seen.shows("/ ZLEXCOUNT z [b + [/ [/a0/tests/x] [bold red]x[/] \\x1b[31m \\u202egnp")
        assert "\x1b" not in seen.app.screen.query_one(Filter).value
