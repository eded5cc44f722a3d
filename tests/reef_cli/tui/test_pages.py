"""How pages of a filtered list join the window: short ones, empty ones, from either end."""

from pathlib import Path
from typing import Any

import pytest

from daemon.core.client import Client
from daemon.core.orders import Order
from reef_cli.tui.pages import Asked, Pages
from reef_cli.tui.window import MOST, PAGE, Row, Want, Window

BUGS = Asked("bug")


def rows(*seqs: int) -> list[Row]:
    return [Row(f"id{n}", (str(n),), seq=n) for n in seqs]


def told(next: int | None) -> dict[str, Any]:
    return {"items": [], "next": None if next is None else str(next), "total": None}


KEYS = {"reset": "Esc", "sort": "o"}


def pages() -> tuple[Pages, Window]:
    window = Window()
    return Pages(Client(Path("/nowhere")), window), window


def shown(window: Window) -> tuple[list[int], int, int]:
    return [row.seq for row in window.rows], window.base, window.total


def test_only_all_sessions_by_activity_are_counted() -> None:
    assert Asked().counted
    assert not BUGS.counted
    assert not Asked(order=Order.COST).counted


def test_what_is_shown_is_told() -> None:
    of, _ = pages()
    assert (of.told(), of.nothing(KEYS.__getitem__)) == ("", "")
    of.newest(BUGS, told(500), rows(600, 700))
    assert of.told() == "2+ fit"
    of.newest(BUGS, told(None), rows(600, 700))
    assert of.told() == "2 fit"
    of.newest(Asked(order=Order.COST), told(None), [])
    assert of.told() == "by cost"
    assert of.nothing(KEYS.__getitem__) == "no trace has a cost; o goes on, Esc: the last activity"


def test_what_lies_far_below_is_looked_for_page_by_page() -> None:
    of, window = pages()
    of.newest(BUGS, told(9000), [])
    assert (of.want((0, 19)), shown(window)) == (Want("before", 9000), ([], 1, 1))
    of.join(Want("before", 9000), [], told(8000))
    of.join(Want("before", 8000), rows(7100, 7900), told(7000))
    assert shown(window) == ([7100, 7900], 1, 3)
    assert of.end == 7900
    assert of.want((0, 19)) == Want("before", 7000)  # not 7100: there is nothing between
    of.join(Want("before", 7000), rows(5), told(None))
    assert (of.want((0, 19)), shown(window)) == (None, ([5, 7100, 7900], 0, 3))


def test_what_came_later_joins_however_far_it_lies() -> None:
    of, window = pages()
    of.newest(BUGS, told(500), rows(600, 700))
    of.later(rows(9000))
    assert shown(window) == ([600, 700, 9000], 1, 4)
    assert of.end == 9000
    assert of.want((1, 3)) == Want("before", 500)
    of.later(rows(*range(9001, 9001 + MOST)))  # the oldest ones are dropped: they are asked for again
    assert of.want((1, 3)) == Want("before", 9001)


@pytest.mark.parametrize(("height", "kept"), [(20, 2 * PAGE), (60, 4 * 60)])
def test_of_a_list_whose_end_is_followed_some_screens_are_kept(height: int, kept: int) -> None:
    of, window = pages()
    for last in range(PAGE, 10 * PAGE + 1, 50):
        page = {"items": [], "next": "1", "total": last}
        of.newest(Asked(), page, rows(*range(last - PAGE + 1, last + 1)), view=(last - height, last - 1))
    assert shown(window) == (list(range(10 * PAGE - kept + 1, 10 * PAGE + 1)), 10 * PAGE - kept, 10 * PAGE)
    assert of.want((10 * PAGE - height, 10 * PAGE - 1)) is None  # nothing that was dropped is asked for at once


def test_another_query_begins_anew() -> None:
    of, window = pages()
    of.newest(BUGS, told(500), rows(600, 700))
    of.newest(Asked(), {"items": [], "next": "100", "total": 1000}, rows(*range(901, 1001)))
    assert (window.base, window.total, window.counted) == (900, 1000, True)
    of.newest(BUGS, told(None), rows(600, 700))
    assert shown(window) == ([600, 700], 0, 2)


def test_the_other_end_is_a_page_away() -> None:
    of, window = pages()
    of.newest(BUGS, told(500), rows(600, 700))
    of.from_start = True
    assert of.want((0, 19)) == Want("jump", 0)
    of.join(Want("jump", 0), rows(*range(1, PAGE + 1)), told(100))
    assert shown(window) == (list(range(1, PAGE + 1)), 0, PAGE + 1)
    assert of.want((90, 99)) == Want("after", 100)
    of.join(Want("after", 100), rows(600, 700), told(None))
    assert (window.base, window.end, window.total) == (0, 102, 102)


def test_a_page_that_comes_too_late_is_seen() -> None:
    of, _ = pages()
    of.newest(BUGS, told(500), rows(600, 700))
    want = Want("before", 500)
    edge = of.edge(want)
    of.later(rows(800))
    assert of.edge(want) == edge  # the other end moved
    assert of.edge(Want("after", 700)) != 700
    of.join(want, rows(400), told(300))
    assert of.edge(want) != edge


def test_nothing_fits_only_where_all_was_looked_at() -> None:
    found, _ = pages()
    found.newest(BUGS, told(5000), [])
    assert found.nothing(KEYS.__getitem__) == "looking further back …"
    want = found.want((0, 10))
    assert want == Want("before", 5000)
    found.join(want, [], told(None))
    assert found.nothing(KEYS.__getitem__) == "no trace fits; Esc shows all of them"
