"""The list widget's columns, and what it does when its rows change under it."""

from textual.app import App, ComposeResult

from reef_cli.tui.widgets.rows import Column, RowList, aligned
from reef_cli.tui.window import Row

COLUMNS = (Column("a", 3), Column("n", 4, right=True), Column("wide", 5, least=30), Column("rest"))


def test_columns_share_the_width() -> None:
    assert aligned(COLUMNS, ("abcdef", "12", "xxxxx", "the rest of it"), 20) == "ab…   12 the rest of"[:19] + "…"
    assert aligned(COLUMNS, ("a", "12", "xx", "rest"), 30) == "a     12 xx    rest           "
    assert len(aligned(COLUMNS, ("a", "12", "xx", "rest"), 3)) == 3
    assert aligned(COLUMNS, ("a", "1", "x", "r"), 0) == ""


class Small(App[None]):
    def compose(self) -> ComposeResult:
        yield RowList((Column(""),))


def rows(*names: str) -> list[Row]:
    return [Row(name, (name,)) for name in names]


async def test_the_selection_is_a_row_not_a_place() -> None:
    app = Small()
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        shown = app.query_one(RowList)
        shown.all(rows(*"abcdefgh"))
        shown.to(5)
        shown.all(rows(*"xyabcdefgh"))
        assert shown.cursor == "f"
        assert shown.view[0] <= 7 <= shown.view[1]
        shown.all(rows(*"xyz"))  # it is gone: the nearest in view
        assert shown.selected is not None
        shown.all([])
        assert shown.selected is None
        shown.move(1)
        shown.to(-1)
        assert shown.selected is None


async def test_the_wheel_takes_the_selection_along_and_stops_following() -> None:
    app = Small()
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        shown = app.query_one(RowList)
        shown.all([Row(f"{n:02}", (f"{n:02}",)) for n in range(50)])
        shown.to_end()
        assert (shown.cursor, shown.follow) == ("49", True)
        shown.scroll_to(y=10, animate=False)
        await pilot.pause()
        assert (shown.cursor, shown.follow) == ("13", False)


def test_a_column_may_be_there_only_where_the_list_is_narrower() -> None:
    columns = (Column("short", 2, most=20), Column("long", 8, least=20), Column("rest"))
    assert aligned(columns, ("+3", "three", "rest"), 19).split() == ["+3", "rest"]
    assert aligned(columns, ("+3", "three", "rest"), 20).split() == ["three", "rest"]


async def test_marks_are_of_rows_and_a_range_goes_from_the_last() -> None:
    app = Small()
    async with app.run_test(size=(20, 8)) as pilot:
        await pilot.pause()
        shown = app.query_one(RowList)
        shown.all(rows(*"abcdefgh"))
        shown.to(1)
        assert not shown.mark_range()
        shown.mark()
        shown.to(3)
        assert shown.mark_range()
        assert list(shown.marks) == ["b", "c", "d"]
        shown.mark()
        shown.all(rows(*"xyabcdefgh"))
        assert list(shown.marks) == ["b", "c"]
        shown.all(rows(*"xyz"))
        assert not shown.mark_range()  # the last mark is not loaded
        shown.unmark()
        assert not shown.marks


async def test_a_list_that_becomes_short_is_followed_on() -> None:
    app = Small()
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        shown = app.query_one(RowList)
        shown.all(rows(*"abcdefgh"))
        shown.to_end()
        for few in ((), ("x",), tuple("abcdefgh"), ("y", "z")):
            shown.all(rows(*few))
            await pilot.pause()
            assert shown.follow
            assert shown.cursor == (few[-1] if few else None)


async def test_it_grows_where_it_is_followed_or_has_room() -> None:
    app = Small()
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        shown = app.query_one(RowList)
        for few, grows in (("", True), ("abc", True), ("abcd", False)):
            shown.all(rows(*few))
            assert shown.grows is grows
        shown.to_end()
        assert shown.grows
