"""Waking those who watch."""

import asyncio
import json
import threading

from daemon.core.rows import ReportRow
from daemon.server.events import Changes


def report(number: int) -> ReportRow:
    return ReportRow(f"rep_{number}", "default", 1.0, None, (), {}, number, None)


async def test_a_watcher_wakes_on_a_change_from_another_thread() -> None:
    changes = Changes(asyncio.get_running_loop())
    waiting = asyncio.create_task(changes.after(0, 300))
    await asyncio.sleep(0)
    thread = threading.Thread(target=changes.committed, args=([],))
    thread.start()
    assert await asyncio.wait_for(waiting, 60) == 1
    thread.join()


async def test_what_changed_before_waiting_is_not_missed() -> None:
    changes = Changes(asyncio.get_running_loop())
    changes.raise_one()
    assert await asyncio.wait_for(changes.after(0, 300), 60) == 1


async def test_nothing_new_comes_back_after_its_time() -> None:
    changes = Changes(asyncio.get_running_loop())
    assert await changes.after(0, 0.01) == 0


async def test_every_watcher_wakes() -> None:
    changes = Changes(asyncio.get_running_loop())
    waiting = [asyncio.create_task(changes.after(0, 300)) for _ in range(5)]
    await asyncio.sleep(0)
    changes.raise_one()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [1] * 5


async def test_a_watcher_that_left_harms_nobody() -> None:
    changes = Changes(asyncio.get_running_loop())
    left = asyncio.create_task(changes.after(0, 300))
    stayed = asyncio.create_task(changes.after(0, 300))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    changes.raise_one()
    assert await asyncio.wait_for(stayed, 60) == 1


async def test_news_are_told_once_to_each_watcher_and_old_news_are_let_go() -> None:
    changes = Changes(asyncio.get_running_loop())
    assert changes.news(0) == ([], False)
    for number in range(600):
        changes.reported(report(number))
    kept, lost = changes.news(0)
    assert [json.loads(news.data)["id"] for news in kept] == [f"rep_{number}" for number in range(100, 600)]
    assert lost, "whoever was at the beginning is told that there was more"
    assert changes.news(100) == (kept, False)
    assert changes.news(changes.told) == ([], False)


async def test_what_was_forgotten_is_told_to_nobody_who_is_behind() -> None:
    changes = Changes(asyncio.get_running_loop())
    changes.reported(report(1))
    changes.forget()
    changes.tell("purge", {})
    kept, lost = changes.news(0)
    assert ([news.event for news in kept], lost) == (["purge"], True)
    assert changes.news(1) == (kept, False)


async def test_large_news_do_not_fill_the_memory() -> None:
    changes = Changes(asyncio.get_running_loop())
    for _ in range(20):
        changes.tell("job", {"message": "x" * (1 << 20)})
    kept, lost = changes.news(0)
    assert lost
    assert sum(len(news.data) for news in kept) <= 4 << 20
