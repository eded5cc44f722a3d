"""A hundred thousand sessions in the real store, behind the real daemon: opened as fast as a hundred."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial

import pytest

from daemon.core.paths import Home
from tests.conftest import new_home
from tests.fakes.daemon import running_daemon
from tests.reef_cli.tui.seen import Seen, dashboard

FEW, MANY = 100, 100_000


def fill(home: Home, count: int) -> None:
    """Sessions as the daemon would have left them, without the exchanges that made them."""
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute("INSERT INTO name (id, text) VALUES (900001, 'default')")
        db.execute(
            """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
            INSERT INTO session (uid, scenario, title, created_ns, updated_ns, updated_seq, turns, records,
            prompt_tokens)
            SELECT printf('ses_%026d', i), 900001, 'session ' || i, i, i, i, 1, 1, i * 7919 % ? FROM n""",
            (count, count),
        )
        db.execute("UPDATE tally SET sessions = ?, records = ?", (count, count))


@pytest.fixture
def homes() -> Iterator[dict[int, Home]]:
    with ExitStack() as stack:
        found = {}
        for count in (FEW, MANY):
            home = stack.enter_context(new_home())
            with running_daemon(home):
                pass
            fill(home, count)
            stack.enter_context(running_daemon(home))
            found[count] = home
        yield found


async def test_many_open_and_scroll_as_fast_as_few(homes: dict[int, Home]) -> None:
    seconds: dict[int, float] = {}
    for count in (FEW, MANY) * 5:  # a busy machine slows any of them
        started = time.perf_counter()
        async with dashboard(homes[count]) as seen:
            await seen.until(lambda count=count: f"session {count}" in seen.marked)  # type: ignore[misc]
            await seen.press("g")
            await seen.until(lambda: seen.marked.endswith(" session 1"))
            await seen.press("G")
            await seen.until(lambda count=count: f"session {count}" in seen.marked)  # type: ignore[misc]
            seconds[count] = min(time.perf_counter() - started, seconds.get(count, 1e9))
            assert seen.panel.list.window.total == count
        if count == MANY and seconds[MANY] < 3 * seconds[FEW]:
            return
    raise AssertionError(seconds)


async def test_many_are_sorted_as_fast_as_few(homes: dict[int, Home]) -> None:
    seconds: dict[int, float] = {}
    for count in (FEW, MANY) * 5:
        async with dashboard(homes[count]) as seen:
            await seen.until(lambda count=count: f"session {count}" in seen.marked)  # type: ignore[misc]
            started = time.perf_counter()
            await seen.press("o")
            await seen.shows("by tokens")
            await seen.until(partial(selected, seen, count - 1))
            await seen.press("g")
            await seen.until(partial(selected, seen, 0))
            seconds[count] = min(time.perf_counter() - started, seconds.get(count, 1e9))
            assert len(seen.panel.list.window.rows) <= 600
        if count == MANY and seconds[MANY] < 3 * seconds[FEW]:
            return
    raise AssertionError(seconds)


def selected(seen: Seen, tokens: int) -> bool:
    row = seen.panel.list.selected
    return row is not None and row.data["prompt_tokens"] == tokens
