"""Work off the loop: what goes wrong in it is said, and ends nothing; with ``REEF_DEBUG`` it shows where."""

import asyncio
import errno
import json

import pytest

from daemon.core.errors import ReefError, UsageError
from daemon.core.paths import Home
from reef_cli.tui.keys import LISTS
from reef_cli.tui.screens.work import Repeating, begin, edge
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.raw_server import answering, ok
from tests.reef_cli.tui.seen import Seen, dashboard
from tests.reef_cli.tui.tour import at


@pytest.fixture
def as_for_people(monkeypatch: pytest.MonkeyPatch, strict: None) -> None:
    monkeypatch.delenv("REEF_DEBUG")


async def every_screen(seen: Seen) -> None:
    for digit, place in enumerate(LISTS, 1):
        await seen.press(str(digit))
        await seen.until(lambda place=place: at(seen, place), place)  # type: ignore[misc]
        await seen.until(lambda: not seen.panel.reload._busy, f"{place} loaded")
    await seen.press("1", "j", "enter", "+", "l", "escape", "question_mark", "escape")


@pytest.mark.usefixtures("as_for_people")
@pytest.mark.parametrize(
    "answer", [b"garbage\n", ok(b"<html>", kind="text/html"), ok(b"null"), ok(b"[]"), ok(b"{}"), ok(b'{"items": [1]}')]
)
async def test_what_is_no_daemon_ends_nothing(reef_home: Home, answer: bytes) -> None:
    with answering(reef_home.socket, answer):
        async with dashboard(reef_home) as seen:
            await seen.shows("!")
            await every_screen(seen)
            await seen.press("1")
            await seen.shows("! what answers")


@pytest.mark.usefixtures("as_for_people")
async def test_a_daemon_of_another_form_is_said_to_be_one(reef_home: Home, fake: FakeDaemon) -> None:
    """Rows, status and events that have nothing of what ours have."""
    fake.sessions = [{"id": 1, "seq": 1}]
    fake.status = {"version": "99.0", "protocol": 99}
    async with dashboard(reef_home) as seen:
        await seen.shows("the daemon is now Reef 99.0", "unexpected KeyError")
        for name in ("record", "live", "report", "pin", "job", "release", "model", "engine", "recording"):
            for data in ("null", "7", "{}", "[{}]"):
                fake.emit(name, json.loads(data))
        await every_screen(seen)


@pytest.mark.usefixtures("as_for_people")
async def test_what_is_folded_may_be_of_another_form(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(1, subagents=1)]
    fake.beside = {fake.sessions[0]["id"]: [{"receipt": "rec_1"}]}
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press("l")
        await seen.shows("unexpected KeyError")


async def test_work_that_was_asked_for_again_is_done_after_it_failed(reef_home: Home, fake: FakeDaemon) -> None:
    done = []
    async with dashboard(reef_home) as seen:

        async def work() -> None:
            done.append(1)
            if len(done) == 1:
                again.ask()
                await asyncio.sleep(0)
                raise UsageError("the first time")

        again = Repeating(seen.panel, work)
        again.ask()
        await seen.until(lambda: len(done) == 2)
        await seen.shows("the first time")


async def test_what_a_key_began_and_failed_is_said(reef_home: Home, fake: FakeDaemon) -> None:
    async def work() -> None:
        raise UsageError("it cannot be", hint="reef doctor")

    async with dashboard(reef_home) as seen:
        begin(seen.panel, work())
        await seen.shows("it cannot be (reef doctor)")


def test_a_disk_that_takes_nothing_is_named() -> None:
    told: list[ReefError] = []
    with edge(told.append):
        raise OSError(errno.EROFS, "Read-only file system", "/home/me/.reef/tui.yaml")
    assert [(error.message, error.hint) for error in told] == [
        ("Read-only file system: /home/me/.reef/tui.yaml", "reef doctor")
    ]


def test_where_it_happened_is_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[ReefError] = []
    with pytest.raises(KeyError), edge(told.append):
        raise KeyError("items")
    monkeypatch.delenv("REEF_DEBUG")
    with edge(told.append):
        raise KeyError("items")
    assert [error.message for error in told] == ["unexpected KeyError: 'items'"]
