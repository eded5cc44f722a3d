"""Ids: in order, unlike each other, safe anywhere."""

import re
import threading
import time

import pytest

from daemon.core.ids import new_id


def test_an_id_is_safe_in_headers_urls_and_file_names() -> None:
    assert re.fullmatch(r"rec_[0-9a-hjkmnp-tv-z]{26}", new_id("rec"))


def test_ids_are_unlike_each_other() -> None:
    assert len({new_id("ses") for _ in range(10_000)}) == 10_000


def test_later_ids_sort_later() -> None:
    first = new_id("rec")
    time.sleep(0.002)
    assert new_id("rec") > first


def test_a_clock_that_steps_back_does_not_turn_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id("rec")
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_id("rec")[:14] >= first[:14]


def test_threads_never_share_one() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id("req") for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2000
