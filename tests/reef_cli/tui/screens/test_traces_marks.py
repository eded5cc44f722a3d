"""Marking many traces and rating them at once; unfolding what is beside a main line."""

import asyncio
from functools import partial
from typing import Any

import pytest

from daemon.core.paths import Home
from reef_cli.tui.screens.trace import Trace
from tests.fakes.dashboard import FakeDaemon, session
from tests.fakes.dashboard import record as recorded
from tests.fakes.provider import Turn
from tests.reef_cli.commands.conftest import Served, served  # noqa: F401  (a fixture)
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/beside.py",)


async def opened(seen: Seen) -> None:
    await seen.until(lambda: seen.panel.list.window.rows)


def starred(seen: Seen) -> int:
    return sum(line[1:2] == "x" for line in seen.screen.splitlines())


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, fake: FakeDaemon, size: tuple[int, int]) -> None:
    fake.sessions = [session(n) for n in range(1, 6)]
    async with dashboard(reef_home, size) as seen:
        await opened(seen)
        await seen.until(lambda: seen.app.desk.engine)
        await seen.press("space", "k", "k", "V", "k")
        await seen.shows("3 marked")
        await seen.settle()
        seen.golden(f"traces-marked-{size[0]}x{size[1]}")


async def test_marks_stay_with_their_traces(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 61)]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("V")
        await seen.shows("nothing is marked: space marks the first one")
        await seen.press("k", "space", "k", "space")
        await seen.shows("2 marked")
        assert starred(seen) == 2
        fake.record(session(70))
        await seen.shows("2 marked · ↓ 1 new (f)")
        await seen.press("f")
        await seen.until(lambda: "session 70" in seen.marked)
        assert starred(seen) == 2
        await seen.press("k", "k", "space")
        await seen.shows("1 marked")
        await seen.press("shift+space")
        await seen.shows("2 marked")
        await seen.press("escape")
        await seen.until(lambda: starred(seen) == 0)
        assert "marked" not in seen.screen


def scores(served: Served, receipts: list[str]) -> list[list[Any]]:  # noqa: F811
    found = [served.daemon.get(f"/reef/records/{receipt}")["reports"] for receipt in receipts]
    return [[one["score"] for one in reports if not one["undone_ns"]] for reports in found]


async def test_many_are_rated_at_once_and_one_undo_takes_all_back(served: Served) -> None:  # noqa: F811
    receipts = [await asyncio.to_thread(served.ask, f"one of many {n}") for n in range(3)]
    async with dashboard(served.home) as seen:
        await seen.until(lambda: "one of many 2" in seen.marked)
        await seen.press("space", "k", "k", "V", "plus")
        await seen.until(lambda: scores(served, receipts) == [[1.0]] * 3)
        await seen.until(lambda: seen.screen.count("+ good") >= 3)
        assert "3 marked" in seen.screen  # still: for a note, say
        await seen.press("z")
        await seen.until(lambda: scores(served, receipts) == [[]] * 3)
        await seen.press("minus")
        await seen.until(lambda: scores(served, receipts) == [[0.0]] * 3)
        await seen.press("c")
        await seen.shows("Note on the last answers of 3 traces")
        await seen.press(*"use uv", "enter")
        await seen.until(lambda: scores(served, receipts) == [[0.0, None]] * 3)
        await seen.press("0")
        await seen.until(lambda: scores(served, receipts) == [[None]] * 3)
        await seen.press("escape")
        await seen.until(lambda: "marked" not in seen.screen)


def beside(of: str, kind: str, n: int, **changes: Any) -> dict[str, Any]:
    return recorded(f"rec_{kind}{n}", of, kind=kind, preview=f"what {kind} {n} said", edge="next",
                    cost_usd=None, **changes)  # fmt: skip


@pytest.fixture
def held(fake: FakeDaemon) -> FakeDaemon:
    """Three sessions, the second with a sub-agent of two turns, two side calls and a retry."""
    fake.sessions = [session(n) for n in range(1, 4)]
    fake.sessions[1] |= {"subagents": 2, "side": 2, "retries": 1, "records": 6}
    of = fake.sessions[1]["id"]
    first = beside(of, "subagent", 1) | {"edge": "spawn"}
    fake.beside[of] = [
        beside(of, "retry", 1, end="error", error="rate limit", status=429),
        beside(of, "side", 2),
        beside(of, "subagent", 2, parent="rec_subagent1", prompt_tokens=900),
        beside(of, "side", 1) | {"preview": "\x1b[2J [/a0/x] title"},
        first,
    ]
    fake.traces[of] = {"session": fake.sessions[1], "records": []}
    return fake


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_unfolded_golden(reef_home: Home, held: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen)
        await seen.until(lambda: seen.app.desk.engine)
        await seen.press("k", "l")
        await seen.shows("└ sub: what subagent 2")
        await seen.settle()
        seen.golden(f"traces-unfolded-{size[0]}x{size[1]}")


async def test_unfolding_and_folding(reef_home: Home, held: FakeDaemon) -> None:
    async with dashboard(reef_home, (100, 24)) as seen:
        await opened(seen)
        before = seen.screen.splitlines()[1:8]
        await seen.press("l")
        await seen.shows("nothing is folded here")
        await seen.press("h")
        await seen.shows("nothing is unfolded here")
        for unfold, fold in (("l", "h"), ("right", "left")):
            await seen.press("k", unfold)
            await seen.shows("▾ what was asked in session 2", "\\x1b[2J [/a0/x] title", "! error")
            assert seen.panel.list.window.total == 3 + 4
            await seen.press("j", "j", fold)  # from a line of it
            await seen.until(lambda: "▸ what was asked in session 2" in seen.marked)
            await seen.press("j")
            await seen.until(lambda: "session 3" in seen.marked)
        assert seen.screen.splitlines()[1:8] == before


async def test_it_moves_with_its_session_and_shows_what_came_since(reef_home: Home, held: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("k", "l")
        await seen.shows("└ side: what side 2")
        of = held.sessions[1]
        held.beside[of["id"]].insert(0, beside(of["id"], "side", 3))
        await seen.press("f")
        held.record({**of, "side": 3, "records": 7})
        await seen.shows("└ side: what side 3")
        titles = [row.cells[-1] for row in seen.panel.list.window.rows]
        assert [title for title in titles if "└" not in title] == [
            "what was asked in session 1", "what was asked in session 3", "▾ what was asked in session 2",
        ]  # fmt: skip
        assert (len(titles), seen.panel.list.window.total) == (8, 8)


async def test_a_line_opens_its_trace_and_is_rated_itself(reef_home: Home, held: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("k", "l", "j")
        await seen.until(lambda: "└ sub" in seen.marked)
        panel = seen.panel
        assert getattr(panel, "meant")()[0]["receipt"] == "rec_subagent2"  # noqa: B009
        await seen.press("minus")
        await seen.until(lambda: "- bad …" in seen.marked)  # the fake daemon takes none: it waits
        await seen.press("enter")
        await seen.until(lambda: isinstance(seen.app.screen, Trace))
        await seen.until(lambda: any(f"/traces/{held.sessions[1]['id']}" in path for _, path, _ in held.requests))


async def test_a_sub_agent_of_the_real_daemon(served: Served) -> None:  # noqa: F811
    def ask(text: str, **headers: str) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        status, _, raw = served.daemon.post("/v1/chat/completions", body, x_reef_session_id="unfolded", **headers)
        assert status == 200, raw

    served.provider.turns = (Turn("found nothing"),)
    await asyncio.to_thread(ask, "ask somebody else")
    await asyncio.to_thread(partial(ask, "look for it", x_claude_code_agent_id="a1"))
    async with dashboard(served.home, (140, 24)) as seen:
        await seen.until(lambda: "ask somebody else" in seen.marked)
        await seen.shows("1 sub", "▸ ask somebody else")
        await seen.press("l")
        await seen.shows("▾ ask somebody else", "└ sub: found nothing")
        await seen.press("j", "plus")
        await seen.shows("+ good: rec_")
        await seen.until(lambda: "+ good" in seen.marked)  # the line, not its session
        rated = served.daemon.get("/reef/search?q=score:good%20kind:subagent")["items"]
        assert [hit["record"]["preview"] for hit in rated] == ["found nothing"]
