"""The one list of the dashboard: draws the rows in view, whatever their number (Textual's lists mount or measure all).

The selected row is known by its id. Following means standing at the end and staying there; moving up stops it. Nothing
is animated. Rows are drawn as plain segments: their text is never markup.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from reef_cli.tui import themes
from reef_cli.tui.text import fit, wrapped
from reef_cli.tui.window import Row, Window

#: What stands left of a row: whether it is selected, whether it is marked.
_LEFT = 2


class Column(NamedTuple):
    """``width`` 0 takes what is left; ``least``: shown where the list is at least that wide, and narrower than ``most``
    where that is given."""

    title: str
    width: int = 0
    least: int = 0
    right: bool = False
    most: int = 0

    def fits(self, width: int) -> bool:
        return width >= self.least and (not self.most or width < self.most)


def aligned(columns: Sequence[Column], cells: Sequence[str], width: int) -> str:
    """The cells on one line of ``width`` columns."""
    shown = [(column, cell) for column, cell in zip(columns, cells, strict=True) if column.fits(width)]
    rest = width - sum(column.width for column, _ in shown) - (len(shown) - 1)
    words = [fit(cell, column.width or max(rest, 0), right=column.right) for column, cell in shown]
    return fit(" ".join(words), max(width, 0))


class RowList(ScrollView, can_focus=True, inherit_bindings=False):
    DEFAULT_CSS = "RowList { height: 1fr; overflow-y: scroll; overflow-x: hidden; scrollbar-size-vertical: 1; }"

    class Moved(Message):
        """The selection or the view moved: rows ``first`` to ``last`` are in view."""

        def __init__(self, first: int, last: int) -> None:
            super().__init__()
            self.first = first
            self.last = last

    class Chosen(Message):
        """A row was clicked."""

    def __init__(self, columns: Sequence[Column], *, follow: bool = False, empty: str = "") -> None:
        super().__init__()
        self.columns = columns
        self.window = Window()
        self.follow = follow
        self.empty = empty
        self.cursor: str | None = None
        self.marks: dict[str, Row] = {}
        self.hit = ""  # lower-case words that stand out wherever they are in view
        self._goal: int | None = None  # a row to select as soon as it is loaded
        self._ours = False  # this scrolling is the program's, not the person's

    @property
    def view(self) -> tuple[int, int]:
        """The first and last row in view."""
        first = self.scroll_offset.y
        return first, first + max(self._height, 1) - 1

    @property
    def selected(self) -> Row | None:
        index = self.window.index(self.cursor)
        return None if index is None else self.window.row(index)

    @property
    def grows(self) -> bool:
        """Whether new rows come into view by themselves: the end is followed, or there is room below it."""
        return self.follow or self.window.end == self.window.total < self._height

    @property
    def _height(self) -> int:
        return self.scrollable_content_region.height or self.size.height

    # -- content ------------------------------------------------------------------------------------

    def change(self, edit: Callable[[Window], None]) -> None:
        """Change the window; what the person looks at stays where it is, or at the end while following."""
        first, last = self.view
        seen = [(n - first, row.id) for n in range(first, last + 1) if (row := self.window.row(n)) is not None]
        edit(self.window)
        self._ours = True  # a list that became shorter scrolls
        self.virtual_size = Size(0, self.window.total)
        self._ours = False
        moved = next((index - n for n, id in seen if (index := self.window.index(id)) is not None), None)
        if self.follow:
            self.cursor = self.window.rows[-1].id if self.window.rows else None
            self._scroll_top(self.window.total)
        elif moved is not None:
            self._scroll_top(moved)
        if self._goal is not None and (row := self.window.row(self._goal)) is not None:
            self.cursor, self._goal = row.id, None
        self._keep_in_view()
        self.refresh()

    def all(self, rows: Sequence[Row], *, select: str | None = None) -> None:
        """Show exactly these rows."""
        if select is not None:
            self.cursor = select
        self.change(lambda window: window.all(rows))
        index = self.window.index(self.cursor)
        if index is not None:
            self._reveal(index)

    # -- marks --------------------------------------------------------------------------------------

    def mark(self) -> None:
        """The selected row, or not any more."""
        row = self.selected
        if row is not None and self.marks.pop(row.id, None) is None:
            self.marks[row.id] = row
        self.refresh()

    def mark_range(self) -> bool:
        """From the last mark to the selected row; False where that is out of reach."""
        start = self.window.index(next(reversed(self.marks), None))
        end = self.window.index(self.cursor)
        if start is None or end is None:
            return False
        for n in range(min(start, end), max(start, end) + 1):
            if (row := self.window.row(n)) is not None:
                self.marks[row.id] = row
        self.refresh()
        return True

    def unmark(self) -> None:
        self.marks.clear()
        self.refresh()

    # -- moving -------------------------------------------------------------------------------------

    def move(self, step: int) -> None:
        """The selection, by rows. Past the end it follows again."""
        index = self.window.index(self.cursor)
        if index is None:
            index = self.view[0]
        if step > 0 and index >= self.window.total - 1:
            self.to_end()
            return
        self.to(index + step)

    def to(self, index: int) -> None:
        self.follow = False
        index = max(0, min(index, self.window.total - 1))
        row = self.window.row(index)
        if row is None and not self.window.counted and self.window.rows:  # nobody knows what stands there
            index = max(self.window.base, min(index, self.window.end - 1))
            row = self.window.row(index)
        self._goal = None if row is not None else index
        if row is not None:
            self.cursor = row.id
        self._reveal(index)
        self._tell()

    def to_end(self) -> None:
        self.follow = True
        if self.window.rows:
            self.cursor = self.window.rows[-1].id
        self._scroll_top(self.window.total)
        self.refresh()  # all of it may be in view: then nothing scrolls
        self._tell()

    def reveal(self, id: str, below: int) -> None:
        """Bring a row into view, and so many below it, as far as the row itself stays in view."""
        index = self.window.index(id)
        if index is not None:
            self._reveal(index + min(below, self._height - 1))

    def half(self) -> int:
        return max(self._height // 2, 1)

    def _reveal(self, index: int) -> None:
        first, last = self.view
        if index < first:
            self._scroll_top(index)
        elif index > last:
            self._scroll_top(index - (last - first))
        self.refresh()

    def _scroll_top(self, top: int) -> None:
        self._ours = True
        self.scroll_to(y=max(0, min(top, self.window.total - self._height)), animate=False, force=True)
        self._ours = False

    def _keep_in_view(self) -> None:
        """The selection is never out of sight."""
        first, last = self.view
        last = min(last, self.window.total - 1)
        index = self.window.index(self.cursor)
        if self._goal is None and (index is None or not first <= index <= last):
            near = first if index is None or index < first else last
            row = self.window.row(near) or self.window.row(max(self.window.base, min(near, self.window.end - 1)))
            self.cursor = row.id if row is not None else None

    def _tell(self) -> None:
        self.post_message(self.Moved(*self.view))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) == round(new_value) or self._ours:
            return
        self._goal = None  # the wheel or the scroll bar
        if new_value < min(old_value, self.max_scroll_y):  # at the end it is a terminal that grew
            self.follow = False
        self._keep_in_view()
        self._tell()

    def on_resize(self) -> None:
        index = self.window.index(self.cursor)
        if self.follow:
            self._scroll_top(self.window.total)
        elif index is not None:
            self._reveal(index)
        else:
            self._keep_in_view()
        self._tell()

    def on_click(self, event: object) -> None:
        row = self.window.row(self.scroll_offset.y + int(getattr(event, "y", 0)))
        if row is not None:
            again = self.cursor == row.id
            self.follow, self.cursor = False, row.id
            self.refresh()
            self._tell()
            if again:
                self.post_message(self.Chosen())

    # -- drawing ------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        row = self.window.row(index)
        if row is None:
            text = "  …" if index < self.window.total else self._instead(y, width) if not self.window.total else ""
            return Strip([Segment(fit(text, width))], width).apply_style(self.rich_style)
        chosen = row.id == self.cursor
        marks = (">" if chosen else " ") + ("x" if row.id in self.marks else " ")
        text = marks + aligned(self.columns, row.cells, width - _LEFT)
        base = themes.style(self.app.theme, row.style)
        if chosen:
            base += Style(reverse=True, bold=True)
        spans = [(_LEFT + start, _LEFT + end, style) for start, end, style in row.spans]
        spans += [(start, end, "hit") for start, end in found(text, self.hit)]
        return self._styled(text, width, base, spans).apply_style(self.rich_style)

    def _instead(self, y: int, width: int) -> str:
        """A line of what stands where there are no rows."""
        lines = wrapped(self.empty, width - _LEFT)
        return " " * _LEFT + lines[y] if y < len(lines) else ""

    def _styled(self, text: str, width: int, base: Style, spans: Sequence[tuple[int, int, str]]) -> Strip:
        """Later spans stand on earlier ones."""
        if not spans:
            return Strip([Segment(text, base)], width)
        places = {place for start, end, _ in spans for place in (start, end)}
        cuts = sorted(place for place in places if 0 < place < width)
        pieces, at = [], 0
        for piece, end in zip(Strip([Segment(text)], width).divide([*cuts, width]), [*cuts, width], strict=True):
            style = base
            for first, last, name in spans:
                if first <= at < last:
                    style += themes.style(self.app.theme, name)
            pieces.append(piece.apply_style(style))
            at = end
        return Strip.join(pieces)


def found(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Where ``words`` stand in a line, in columns, whatever their case."""
    low = text.lower()
    if not words or len(low) != len(text):
        return
    at = low.find(words)
    while at >= 0:
        start = cell_len(text[:at])
        yield start, start + cell_len(text[at : at + len(words)])
        at = low.find(words, at + len(words))
