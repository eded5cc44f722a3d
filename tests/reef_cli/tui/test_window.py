"""The window over a list that stays in the daemon: what is kept, where it is, what is asked for."""

from reef_cli.tui.window import MOST, PAGE, Row, Want, Window


def rows(first: int, last: int) -> list[Row]:
    return [Row(f"id{n}", (str(n),), seq=n) for n in range(first, last + 1)]


def at_the_end(total: int = 1000) -> Window:
    window = Window()
    window.tail(rows(total - PAGE + 1, total), total)
    return window


def shown(window: Window) -> list[int]:
    return [row.seq for row in window.rows]


def test_the_newest_page_stands_at_the_end() -> None:
    window = at_the_end()
    assert (window.base, window.end, window.total) == (900, 1000, 1000)
    assert window.row(999) == rows(1000, 1000)[0]
    assert window.row(0) is None
    assert window.index("id901") == 900
    assert window.want(980, 999) is None


def test_a_row_that_moved_is_there_once() -> None:
    window = at_the_end()
    moved = Row("id950", ("950",), seq=1001)
    window.tail([*(row for row in rows(901, 1000) if row.id != "id950"), moved], 1000)
    assert shown(window).count(950) == 0
    assert window.index("id950") == 999
    assert window.total == 1000


def test_new_rows_join_what_is_loaded_and_a_gap_replaces_it() -> None:
    window = at_the_end()
    window.tail(rows(951, 1050), 1050)
    assert shown(window) == list(range(901, 1051))
    window.tail(rows(2001, 2100), 2100)
    assert shown(window) == list(range(2001, 2101))


def test_going_up_asks_for_older_pages_and_forgets_newer_ones() -> None:
    window = at_the_end()
    assert window.want(905, 924) == Want("before", 901)
    for _ in range(9):
        first = window.rows[0].seq
        window.before(rows(max(first - PAGE, 1), first - 1), whole=first - PAGE <= 1)
    assert (window.base, len(window.rows), window.total) == (0, MOST, 1000)
    assert shown(window) == list(range(1, MOST + 1))
    assert window.want(0, 19) is None
    assert window.want(590, 609) == Want("after", 600)
    window.after(rows(601, 700), whole=False)
    assert shown(window) == list(range(101, 701))
    assert (window.base, window.total) == (100, 1000)


def test_a_jump_estimates_and_an_end_corrects() -> None:
    window = at_the_end()
    assert window.want(0, 19) == Want("jump", 0, 0)
    assert window.want(500, 519) == Want("jump", 500, 500)
    window.jump(rows(521, 620), 500, whole=False)  # 20 sessions below were more than thought
    assert window.index("id521") == 500
    window.before(rows(421, 520), whole=False)
    for first in (321, 221, 121, 21):
        window.before(rows(first, first + 99), whole=False)
    window.before(rows(1, 20), whole=True)
    assert window.index("id1") == 0
    assert window.index("id521") == 520


def test_rows_change_in_place_only_where_they_stand() -> None:
    window = at_the_end()
    window.update([Row("id950", ("new",), seq=950), Row("id951", ("moved",), seq=1001), Row("id1", ("gone",), seq=1)])
    assert window.rows[49].cells == ("new",)
    assert window.rows[50].cells == ("951",)


def test_after_the_newest_page_nothing_is_wanted() -> None:
    window = at_the_end()
    window.jump(rows(1, 100), 0, whole=False)
    while (want := window.want(window.end - 20, window.end - 1)) is not None:
        window.after(rows(want.seq + 1, min(want.seq + PAGE, 990)), whole=want.seq + PAGE >= 990)
    assert (window.end, window.total) == (990, 990)  # ten were deleted meanwhile


def test_an_empty_list_wants_nothing() -> None:
    window = Window()
    window.tail([], 0)
    assert (window.want(0, 19), window.total) == (None, 0)


def test_lines_are_unfolded_under_their_row_and_folded_again() -> None:
    window = at_the_end()
    lines = [Row(f"line{n}", ("",), seq=950, under="id950") for n in range(3)]
    window.unfold(Row("id950", ("open",), seq=950), lines)
    place = window.index("id950")
    assert place == 949
    assert [window.row(place + n).id for n in range(5)] == ["id950", "line0", "line1", "line2", "id951"]  # type: ignore[union-attr]
    assert (window.base, window.end, window.total) == (900, 1003, 1003)
    window.unfold(Row("id950", ("open",), seq=950), lines[:1])
    assert window.total == 1001
    window.unfold(Row("id950", ("950",), seq=950), [])
    assert shown(window) == list(range(901, 1001))


def test_a_list_that_nobody_counts_has_one_row_for_what_is_not_loaded() -> None:
    window = Window()
    window.tail(rows(10, 20), None, floor=5)
    assert (window.base, window.total, window.counted) == (1, 12, False)
    assert window.want(0, 5) == Want("before", 10)
    window.before(rows(1, 4), whole=False)
    assert (window.base, window.total) == (1, 16)
    window.tail(rows(15, 30), None, floor=15)
    assert shown(window) == [1, 2, 3, 4, *range(10, 31)]
    window.tail(rows(31, 32), None, floor=31)  # what is between was not looked at
    assert (shown(window), window.base, window.total) == ([31, 32], 1, 3)
    window.tail(rows(31, 33), None, floor=0)
    assert (window.base, window.total) == (0, 3)
