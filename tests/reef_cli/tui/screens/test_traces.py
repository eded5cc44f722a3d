"""The list of traces: where it opens, what moves it, what it costs, and feedback from it."""

import time
from functools import partial

import pytest

from daemon.core.paths import Home
from reef_cli.tui.screens.trace import Trace
from tests.fakes.dashboard import NOW, FakeDaemon, said, session
from tests.fakes.dashboard import record as recorded
from tests.reef_cli.tui.seen import Seen, dashboard

HOSTILE = "\x1b]0;owned\x07\x1b[2J \u202egnp.exe [bold red]markup[/] \r\n[@click=app.exit]x[/]"


def sample() -> list[dict[str, object]]:
    day = 86_400 * 10**9
    return [
        session(1, title="an old one", updated_ns=NOW - 400 * day, agent=None, score=0.5, reports=1),
        session(2, title="set up the project with uv", updated_ns=NOW - 3 * day, turns=12, prompt_tokens=1_234_567,
                cost_usd=1.25, duration_us=180_000_000, records=18, subagents=2, side=3, retries=1),
        session(3, title=HOSTILE, agent="\x1b[31mred", updated_ns=NOW - day, score=0.0, reports=1),
        session(4, title="漢字 und 👨‍👩‍👧 emoji 👍🏽 stand in line", agent="claude-code", score=1.0, reports=1),
        session(5, title="a note was left here", scenario="work/api", reports=1, side=1, cost_usd=0.0123),
        session(7, title="it broke off", status="error", release_id="base"),
        session(8, title=" ".join(["a long request that does not fit in any row"] * 5), turns=3),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (80, 24), (120, 36), (240, 12)])
async def test_golden(reef_home: Home, fake: FakeDaemon, size: tuple[int, int]) -> None:
    fake.sessions = sample()
    async with dashboard(reef_home, size) as seen:
        await seen.until(lambda: seen.app.desk.engine)
        await seen.shows("> ")
        seen.golden(f"traces-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (20, 5), (200, 60)])
async def test_every_line_is_as_wide_as_the_screen(reef_home: Home, fake: FakeDaemon, size: tuple[int, int]) -> None:
    """Wide characters, joiners and control characters do not shift what stands right of them."""
    fake.sessions = sample()
    async with dashboard(reef_home, size) as seen:
        await seen.until(lambda: len(seen.panel.list.window.rows) == 7)
        assert {strip.cell_length for strip in seen.app.screen._compositor.render_strips()} == {size[0]}


async def test_hostile_titles_are_spelled_out(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = sample()
    async with dashboard(reef_home, (200, 24)) as seen:
        await seen.shows("\\x1b]0;owned\\x07", "[bold red]markup[/]", "\\u202egnp.exe", "[@click=app.exit]x[/]")
        assert "\x1b" not in seen.screen
        assert "\u202e" not in seen.screen


async def test_an_empty_list_says_how_to_fill_it(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet: what an agent asks", "  reef harness install --adapter pi", "embedded: ready")
        await seen.press("plus")
        await seen.shows("no trace is selected")


async def opened(seen: Seen) -> None:
    await seen.until(lambda: seen.panel.list.window.rows)


def marks(seen: Seen, n: int) -> bool:
    return f"session {n} " in f"{seen.marked} "


async def test_moving(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        assert "session 60" in seen.marked
        for keys, where in ((["k"], 59), (["up"], 58), (["j"], 59), (["ctrl+u"], 49), (["pageup"], 39),
                            (["ctrl+d"], 49), (["pagedown"], 59), (["g"], 1), (["down"], 2), (["G"], 60), (["home"], 1),
                            (["end"], 60)):  # fmt: skip
            await seen.press(*keys)
            await seen.until(partial(marks, seen, where), f"{keys} to {where}")


async def test_new_rows_follow_or_wait(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        fake.record(session(61))
        await seen.until(lambda: "session 61" in seen.marked)  # followed
        await seen.press("k")
        before = seen.screen.splitlines()[2:-3]
        fake.record(session(62))
        fake.record(session(63))
        fake.record(session(63))
        await seen.shows("↓ 2 new (f)")
        assert seen.screen.splitlines()[2:-3] == before  # nothing moved under the reader
        await seen.press("f")
        await seen.until(lambda: "session 63" in seen.marked)
        assert "new (f)" not in seen.screen
        await seen.press("f")
        await seen.shows("not following")
        fake.record(session(5))
        await seen.shows("↓ 1 new (f)")
        await seen.press("j")  # past the end
        await seen.until(lambda: "session 5 " in f"{seen.marked} ")
        assert seen.screen.count("session 5\n") == 1  # it moved to the end


@pytest.mark.parametrize("key", ["g", "k"])
async def test_a_short_list_takes_new_rows_in_below_the_selected_one(
    reef_home: Home, fake: FakeDaemon, key: str
) -> None:
    fake.sessions = [session(n) for n in range(1, 4)]
    async with dashboard(reef_home, (80, 12)) as seen:
        await opened(seen)
        await seen.press(key)
        chosen = seen.marked
        n = 3
        while seen.panel.list.grows:
            n += 1
            fake.record(session(n))
            await seen.shows(f"session {n}\n")
            assert seen.marked == chosen
        assert n == seen.panel.list.size.height
        fake.record(session(n + 1))
        await seen.shows("↓ 1 new (f)")
        await seen.press("f")
        await seen.until(lambda: f"session {n + 1}" in seen.marked)


async def test_a_rating_from_elsewhere_shows_without_moving_anything(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 201)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("g")
        await seen.until(lambda: "session 1" in seen.marked)
        fake.sessions[0]["score"] = 0.0
        fake.emit("report", {"references": ["rec_1"]})
        await seen.until(lambda: "- bad" in seen.marked)


async def test_any_row_of_many_is_a_page_away(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 100_001)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("g")
        await seen.until(lambda: "session 1 " in f"{seen.marked} ")
        for _ in range(30):
            await seen.press("ctrl+d")
        await seen.until(lambda: "session 301 " in f"{seen.marked} ")
        seen.panel.list.scroll_to(y=50_000, animate=False)  # the scroll bar
        await seen.until(lambda: "session 500" in seen.marked)
        await seen.settle()
        middle = seen.panel.list.selected
        await seen.press("k", "k", "j")
        assert middle is not None
        await seen.until(lambda: f"session {middle.seq - 1} " in f"{seen.marked} ")
        await seen.press("G")
        await seen.until(lambda: "session 100000" in seen.marked)
        assert len(seen.panel.list.window.rows) <= 600
        asked = sum(rows for _, path, rows in fake.requests if path.startswith("/reef/sessions"))
        assert asked < 2000


async def test_many_open_as_fast_as_few(reef_home: Home, fake: FakeDaemon) -> None:
    """The same requests for the same number of rows, so the same work; times are compared in one run."""
    seconds: dict[int, float] = {}
    requests: dict[int, list[tuple[str, int]]] = {}
    for count in (100, 100_000) * 5:  # a busy machine slows any of them
        fake.sessions = [session(n) for n in range(1, count + 1)]
        fake.requests.clear()
        started = time.perf_counter()
        async with dashboard(reef_home) as seen:
            await seen.shows(f"session {count}")
            seconds[count] = min(time.perf_counter() - started, seconds.get(count, 1e9))
            requests[count] = sorted((path, rows) for _, path, rows in fake.requests if path != "/reef/status")
        if count == 100_000 and seconds[count] < 3 * seconds[100]:
            break
    assert requests[100] == requests[100_000] == [("/reef/events", 0), ("/reef/sessions?limit=100", 100)]
    assert seconds[100_000] < 3 * seconds[100]


async def test_a_burst_makes_few_updates(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        fake.requests.clear()
        started = time.monotonic()
        for n in range(61, 561):
            fake.record(session(n))
        await seen.until(lambda: "session 560" in seen.marked)
        updates = [path for _, path, _ in fake.requests if path.startswith("/reef/sessions")]
        assert len(updates) <= 10 * (time.monotonic() - started) + 2


async def test_idle_asks_and_draws_nothing(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    async with dashboard(reef_home) as seen:
        await seen.shows("embedded: ready")
        await seen.until(lambda: "session 60" in seen.marked)
        fake.requests.clear()
        assert not seen.app.animator._animations
        assert [timer for timer in seen.app._timers if timer.name != "run_test"] == []
        assert not seen.app.workers._workers
        assert fake.requests == []


async def test_enter_opens_and_esc_comes_back_to_the_same_row(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    opened_one = fake.sessions[57]
    trace = {"session": opened_one, "records": [
        {"record": recorded("rec_a", opened_one["id"]), "new_messages": [said("user", "hello")],
         "answer": said("assistant", "an answer"), "reports": []}]}  # fmt: skip
    fake.traces[opened_one["id"]] = trace
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("k", "k", "enter")
        await seen.shows("an answer")
        assert isinstance(seen.app.screen, Trace)
        await seen.press("escape")
        await seen.until(lambda: "session 58" in seen.marked)


async def test_q_leaves(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")
        await seen.press("q")
        assert not seen.app.is_running


async def test_a_click_selects_and_another_opens(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    fake.traces[fake.sessions[43]["id"]] = {"session": fake.sessions[43], "records": []}
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.pilot.click("RowList", offset=(10, 3))
        await seen.until(lambda: "session 44" in seen.marked)
        await seen.pilot.click("RowList", offset=(10, 3))
        await seen.until(lambda: isinstance(seen.app.screen, Trace))
