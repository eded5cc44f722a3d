"""Feedback from the dashboard on the real daemon: in the store, reversible, beside somebody else's."""

import asyncio
from typing import Any

import pytest

from daemon.core.client import Client
from reef_cli.tui.rating import Ratings
from tests.reef_cli.commands.conftest import Served, served  # noqa: F401  (a fixture)
from tests.reef_cli.tui.seen import Seen, dashboard

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


def standing(served: Served, receipt: str) -> list[tuple[Any, Any]]:  # noqa: F811
    reports = served.daemon.get(f"/reef/records/{receipt}")["reports"]
    return [(one["score"], one["feedback"]) for one in reports if not one["undone_ns"]]


async def opened(seen: Seen, title: str) -> None:
    await seen.until(lambda: title in seen.marked)


async def test_rating_from_the_list(served: Served) -> None:  # noqa: F811
    receipt = await asyncio.to_thread(served.ask, "rate me from the list")
    async with dashboard(served.home) as seen:
        await opened(seen, "rate me from the list")
        await seen.press("plus")
        await seen.shows(f"+ good: {receipt}; z takes it back")
        await seen.until(lambda: "+ good" in seen.marked)
        assert standing(served, receipt) == [(1.0, None)]
        await seen.press("minus")
        await seen.until(lambda: "- bad" in seen.marked)
        await seen.press("z")
        await seen.shows(f"undone: - bad on {receipt}")
        await seen.until(lambda: "+ good" in seen.marked)
        await seen.press("0")
        await seen.shows(f"cleared: {receipt}; z brings it back")
        assert standing(served, receipt) == []
        await seen.press("z")
        await seen.shows(f"brought back: + good on {receipt}")
        assert standing(served, receipt) == [(1.0, None)]


async def test_a_note_stays_when_the_rating_is_cleared(served: Served) -> None:  # noqa: F811
    receipt = await asyncio.to_thread(served.ask, "note me")
    async with dashboard(served.home) as seen:
        await opened(seen, "note me")
        await seen.press("minus")
        await seen.shows(f"- bad: {receipt}")
        await seen.press("c")
        await seen.shows("Note on the last answer of: note me")
        await seen.press(*"use uv", "enter")
        await seen.shows(f"noted: {receipt}")
        await seen.press("0")
        await seen.shows(f"cleared: {receipt}")
        assert standing(served, receipt) == [(None, "use uv")]
        await seen.until(lambda: " note " in seen.marked)
        await seen.press("c", "enter")  # an empty note is none
        await seen.until(lambda: "note me" in seen.marked)
        assert standing(served, receipt) == [(None, "use uv")]


async def test_the_answer_under_the_cursor_is_rated(served: Served) -> None:  # noqa: F811
    first: dict[str, object] = {"role": "user", "content": "the first question of two"}
    one = await asyncio.to_thread(served.converse, first)
    answer = served.daemon.get(f"/reef/traces/{one}")["records"][0]["answer"]["parts"][0]["text"]
    rest: list[dict[str, object]] = [{"role": "assistant", "content": answer}, {"role": "user", "content": "second"}]
    two = await asyncio.to_thread(served.converse, first, *rest)
    async with dashboard(served.home) as seen:
        await opened(seen, "the first question of two")
        await seen.press("enter")
        await seen.shows(one, two)
        await seen.select("the first question of two", "k")
        await seen.press("plus")
        await seen.shows("* + good")
        assert standing(served, one) == [(1.0, None)]
        assert standing(served, two) == []


async def test_undo_leaves_what_others_said_meanwhile(served: Served) -> None:  # noqa: F811
    """Two dashboards and a shell rate one answer at the same time; each takes back only its own."""
    receipt = await asyncio.to_thread(served.ask, "rated by several")
    mine, theirs = Ratings(Client(served.home.socket)), Ratings(Client(served.home.socket))
    record = served.daemon.get(f"/reef/records/{receipt}")
    await asyncio.gather(*(asyncio.to_thread(who.rate, record, score)
                           for who, score in ((mine, 1.0), (theirs, 0.0)) for _ in range(4)))  # fmt: skip
    assert sorted(standing(served, receipt)) == [(0.0, None)] * 4 + [(1.0, None)] * 4
    await asyncio.gather(*(asyncio.to_thread(mine.undo) for _ in range(4)))
    assert standing(served, receipt) == [(0.0, None)] * 4
    assert mine.undo() == "nothing was rated here yet; reef undo takes back what was said elsewhere"


async def test_a_rating_from_a_shell_shows(served: Served) -> None:  # noqa: F811
    receipt = await asyncio.to_thread(served.ask, "rated from a shell")
    async with dashboard(served.home) as seen:
        await opened(seen, "rated from a shell")
        served.daemon.control("POST", "/reef/report", {"score": 0.0, "references": [receipt]})
        await seen.until(lambda: "- bad" in seen.marked)
        newer = await asyncio.to_thread(served.ask, "a newer question")
        await seen.until(lambda: "a newer question" in seen.marked)
        assert newer
