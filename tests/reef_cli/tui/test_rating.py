"""Feedback from the dashboard on the real daemon: in the store, reversible, beside somebody else's."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.rating import Ratings
from tests.fakes.daemon import RunningDaemon, running_daemon, start, until
from tests.fakes.dashboard import FakeDaemon, session
from tests.fakes.provider import Turn, running_provider
from tests.reef_cli.commands.conftest import Served, served  # noqa: F401  (a fixture)
from tests.reef_cli.tui.screens.test_trace import HOSTILE, sample
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/screens/rated.py", "reef_cli/tui/acts.py")


def standing(served: Served, receipt: str) -> list[tuple[Any, Any]]:  # noqa: F811
    return given(served.daemon, receipt)


def given(daemon: RunningDaemon, receipt: str) -> list[tuple[Any, Any]]:
    reports = daemon.get(f"/reef/records/{receipt}")["reports"]
    return [(one["score"], one["feedback"]) for one in reports if not one["undone_ns"]]


def ask(daemon: RunningDaemon, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return daemon.post("/v1/chat/completions", body)[1]["x-reef-agent-record-id"]


@contextmanager
def ratings(served: Served) -> Iterator[tuple[Ratings, list[str]]]:  # noqa: F811
    told: list[str] = []
    made = Ratings(served.home, Client(served.home.socket), told.append)
    yield made, told
    made.close()


async def opened(seen: Seen, title: str) -> None:
    await seen.until(lambda: title in seen.marked)


async def test_rating_from_the_list(served: Served) -> None:  # noqa: F811
    """BUGS B206."""
    receipt = await asyncio.to_thread(served.ask, "rate me from the list")
    async with dashboard(served.home) as seen:
        await opened(seen, "rate me from the list")
        await seen.press("plus")
        await seen.shows(f"+ good: {receipt}; z takes it back")
        await seen.until(lambda: "+ good" in seen.marked)
        assert standing(served, receipt) == [(1.0, None)]
        await seen.press("minus")
        await seen.shows(f"- bad: {receipt}; z takes it back")
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
        await seen.shows(f"+ good: {one}; z takes it back", "  + good")
        assert standing(served, one) == [(1.0, None)]
        assert standing(served, two) == []


def test_undo_leaves_what_others_said_meanwhile(served: Served) -> None:  # noqa: F811
    """Two dashboards rate one answer at the same time; each takes back only its own."""
    receipt = served.ask("rated by several")
    record = served.daemon.get(f"/reef/records/{receipt}")
    with ratings(served) as (mine, told), ratings(served) as (theirs, _):
        for _ in range(4):
            mine.rate_many([record], 1.0)
            theirs.rate_many([record], 0.0)
        until(lambda: sorted(standing(served, receipt)) == [(0.0, None)] * 4 + [(1.0, None)] * 4, "all are stored")
        for _ in range(5):
            mine.undo()
        until(lambda: standing(served, receipt) == [(0.0, None)] * 4, "mine are taken back")
        until(lambda: told.count(f"undone: + good on {receipt}") == 4, "each is told")
        until(
            lambda: "nothing is left to take back here; reef undo takes back what was said elsewhere" in told,
            "and the fifth",
        )


def test_many_are_rated_and_taken_back_with_one_undo(served: Served) -> None:  # noqa: F811
    receipts = [served.ask(f"one of many {n}") for n in range(5)]
    records = [served.daemon.get(f"/reef/records/{receipt}") for receipt in receipts]
    sessions = [served.daemon.get(f"/reef/traces/{receipt}")["session"] for receipt in receipts]
    with ratings(served) as (mine, told):
        mine.rate_many(records, 0.0)
        assert mine.pending(receipts[4]) == mine.pending(sessions[4]["id"]) == "- bad …"
        until(lambda: "- bad: 5 answers; z takes them back" in told, "stored")
        assert mine.pending(receipts[4]) == ""
        mine.note_many(sessions, "all of them")
        until(lambda: "noted: 5 answers; z takes them back" in told, "noted")
        assert [standing(served, one) for one in receipts] == [[(0.0, None), (None, "all of them")]] * 5
        mine.clear_many(sessions)
        until(lambda: "cleared: 5 answers; z brings them back" in told, "cleared")
        assert [standing(served, one) for one in receipts] == [[(None, "all of them")]] * 5
        mine.undo()
        until(lambda: "brought back: - bad on 5 answers" in told, "brought back")
        mine.undo()
        until(lambda: "undone: all of them on 5 answers" in told, "undone")
        mine.undo()
        until(lambda: "undone: - bad on 5 answers" in told, "undone")
    assert [standing(served, one) for one in receipts] == [[(0.0, None)]] * 5


def test_a_clear_right_after_a_rating_takes_that_one_back(served: Served) -> None:  # noqa: F811
    receipt = served.ask("rated and cleared")
    record = served.daemon.get(f"/reef/records/{receipt}")
    with ratings(served) as (mine, told):
        mine.rate_many([record], 1.0)
        mine.clear_many([record])
        mine.undo()
        until(lambda: f"brought back: + good on {receipt}" in told, "brought back")
        mine.clear_many([record])
        mine.clear_many([record])
        until(lambda: f"nothing to clear: {receipt} has no rating" in told, "nothing is left to clear")
    assert standing(served, receipt) == []


def test_what_is_refused_is_told_and_no_longer_waits(served: Served) -> None:  # noqa: F811
    gone = {"id": "ses_00000000000000000000000000", "scenario": "default"}
    with ratings(served) as (mine, told):
        mine.rate_many([gone], 1.0)
        until(lambda: any(one.startswith("refused: session ses_0") for one in told), "refused")
        assert mine.pending(gone["id"]) == ""
        mine.clear_many([gone])
        until(lambda: any("has no answer to rate" in one for one in told[1:]), "not cleared")
        mine.undo()
        assert told[-1].startswith("nothing is left to take back here")


def test_of_many_what_is_refused_is_told_and_the_rest_is_stored(served: Served) -> None:  # noqa: F811
    receipt = served.ask("beside two that are gone")
    record = served.daemon.get(f"/reef/records/{receipt}")
    gone = {"receipt": "rec_00000000000000000000000000", "session": "ses_1", "scenario": "default"}
    with ratings(served) as (mine, told):
        mine.rate_many([gone, record, {**gone, "receipt": "rec_00000000000000000000000001"}], 1.0)
        until(lambda: len(told) == 2, "both told")
        assert told[0] == f"+ good: {receipt}; z takes it back"
        assert told[1].startswith("refused: scenario 'default' has no record")
        assert told[1].endswith(", and 1 more")
        mine.undo()
        until(lambda: f"undone: + good on {receipt}" in told, "undone")
    assert standing(served, receipt) == []


def test_a_disk_that_takes_nothing_is_told(reef_home: Home) -> None:
    reef_home.outbox.write_text("in the way")
    told: list[str] = []
    mine = Ratings(reef_home, Client(reef_home.socket), told.append)
    mine.rate_many([{"id": "ses_1", "scenario": "default"}], 1.0)
    mine.close()
    assert told[0].startswith("not kept: ")
    assert mine.pending("ses_1") == ""


async def test_it_is_shown_as_stored_only_when_the_daemon_said_so(served: Served) -> None:  # noqa: F811
    receipt = await asyncio.to_thread(served.ask, "rated while it froze")
    async with dashboard(served.home) as seen:
        await opened(seen, "rated while it froze")
        served.daemon.process.send_signal(signal.SIGSTOP)
        try:
            await seen.press("plus")
            await seen.until(lambda: "+ good …" in seen.marked)
        finally:
            served.daemon.process.send_signal(signal.SIGCONT)
        await seen.until(lambda: "+ good" in seen.marked and "…" not in seen.marked)
    assert standing(served, receipt) == [(1.0, None)]


def test_a_daemon_that_is_killed_while_it_stores_stores_each_once(reef_home: Home) -> None:
    with running_provider() as provider:
        provider.turns = (Turn("an answer"),)
        told: list[str] = []
        with running_daemon(reef_home, provider.config()) as daemon:
            receipts = [ask(daemon, f"asked before the kill {n}") for n in range(40)]
            records = [daemon.get(f"/reef/records/{receipt}") for receipt in receipts]
            mine = Ratings(reef_home, Client(reef_home.socket), told.append)
            for n, record in enumerate(records):
                mine.rate_many([record], n % 2)
            sessions = [{"id": record["session"]} for record in records]
            mine.pin_many(sessions[:20], pinned=True)
            mine.note_many(records, "all")
            mine.pin_many(sessions[20:], pinned=True)
            until(lambda: len(told) > 10, "some are stored")
            daemon.kill()
        with running_daemon(reef_home, provider.config()) as daemon:
            mine.wake()
            until(lambda: "noted: 40 answers; z takes them back" in told, "all are stored")
            assert [given(daemon, one) for one in receipts] == [[(n % 2, None), (None, "all")] for n in range(40)]
            until(lambda: told.count("pinned as golden: 20 traces; z takes them back") == 2, "the pins too")
            assert len(daemon.get("/reef/sessions?q=is:pinned")["items"]) == 40
        mine.close()


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_waits_is_seen_as_such(reef_home: Home, size: tuple[int, int]) -> None:
    fake = FakeDaemon(reef_home.socket)
    with fake.running():
        fake.sessions = [session(n) for n in range(1, 5)]
        async with dashboard(reef_home, size) as seen:
            await seen.shows("session 4")
            await asyncio.to_thread(fake.stop)
            await seen.shows("! the daemon")
            await seen.press("plus", "k", "minus", "k", "c", *"a note", "enter", "k", "plus", "z")
            await seen.until(lambda: len(list(reef_home.outbox.glob("*.json"))) == 5)
            await seen.shows("undo … ", "note … ", "- bad … ", "+ good … ", "kept until the daemon is back")
            await seen.rated()
            await seen.press("j")
            seen.golden(f"waiting-{size[0]}x{size[1]}")
            fake.start()


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_waits_is_seen_in_a_trace(reef_home: Home, size: tuple[int, int]) -> None:
    """Said and taken back while nothing listens; text that a terminal could act on included."""
    fake, trace = FakeDaemon(reef_home.socket), sample()
    with fake.running():
        fake.sessions, fake.traces = [trace["session"]], {trace["session"]["id"]: trace}
        async with dashboard(reef_home, size) as seen:
            await seen.until(lambda: seen.panel.list.window.rows)
            await seen.press("enter")
            await seen.shows("the engine died")
            await asyncio.to_thread(fake.stop)
            await seen.shows("! the daemon")
            await seen.select("There is one file", "k")
            await seen.press("plus", "minus", "z", "c")
            await seen.shows("Note on the answer rec_2")
            await seen.press(*"no, ", "enter")
            seen.app.desk.ratings.note_many(seen.panel.meant(), f"as {HOSTILE} said")  # type: ignore[attr-defined]
            await seen.until(lambda: len(list(reef_home.outbox.glob("*.json"))) == 5)
            await seen.rated()
            await seen.press("j", "k")
            await seen.shows("    + good …", "    - bad  (undone) …", "* no, …", "[red]not red[/red]")
            assert "\x1b" not in seen.screen
            seen.golden(f"waiting-trace-{size[0]}x{size[1]}")
            fake.start()


async def test_while_the_daemon_is_gone_feedback_waits_and_says_so(reef_home: Home) -> None:
    """Rated and noted while nothing listens, taken back too; the next daemon gets what is left, once."""
    with running_provider() as provider:
        provider.turns = (Turn("an answer"), Turn("another"))
        daemon = await asyncio.to_thread(start, reef_home, provider.config())
        receipts = [ask(daemon, f"asked before it went {n}") for n in range(2)]
        async with dashboard(reef_home) as seen:
            await seen.shows("asked before it went 1")
            await asyncio.to_thread(daemon.stop)
            await seen.shows("! the daemon")
            await seen.press("plus")
            await seen.until(lambda: "+ good …" in seen.marked)
            await seen.shows("+ good the last answer: kept until the daemon is back")
            await seen.press("c", *"not lost", "enter")
            await seen.until(lambda: "note …" in seen.marked)
            await seen.press("k", "minus", "z")
            await seen.until(lambda: "undo …" in seen.marked)
            await seen.shows("undone: - bad on the last answer")  # it would take the next message's place
            await seen.press("0")
            await seen.shows(": s starts it")
        async with dashboard(reef_home) as seen:  # another one, after that one was left
            await seen.shows("4 pieces of feedback from before wait for the daemon")
            daemon = await asyncio.to_thread(start, reef_home, provider.config())
            try:
                await seen.shows("asked before it went 1")
                await seen.until(lambda: len(given(daemon, receipts[1])) == 2)
                assert given(daemon, receipts[1]) == [(1.0, None), (None, "not lost")]
                await seen.until(lambda: not list(reef_home.outbox.glob("*.json")))
                assert given(daemon, receipts[0]) == []
                await seen.until(lambda: "+ good" in seen.marked)
                assert "…" not in seen.marked
            finally:
                await asyncio.to_thread(daemon.stop)


async def test_a_rating_from_a_shell_shows(served: Served) -> None:  # noqa: F811
    receipt = await asyncio.to_thread(served.ask, "rated from a shell")
    async with dashboard(served.home) as seen:
        await opened(seen, "rated from a shell")
        served.daemon.control("POST", "/reef/report", {"score": 0.0, "references": [receipt]})
        await seen.until(lambda: "- bad" in seen.marked)
        newer = await asyncio.to_thread(served.ask, "a newer question")
        await seen.until(lambda: "a newer question" in seen.marked)
        assert newer
