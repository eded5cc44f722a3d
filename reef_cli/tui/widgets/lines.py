"""One-line widgets around the list: where one is, what the columns are, what was said, which keys there are."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from reef_cli.tui import themes
from reef_cli.tui.keys import ALWAYS, Key
from reef_cli.tui.text import fit, inert, wrapped
from reef_cli.tui.widgets.rows import Column, aligned

#: Lines that one takes at most, and the height of a terminal that has some to spare.
_MOST, _LOW = 4, 14


class Line(Widget):
    """A line of text, its left part and what stands at its right end; both made inert here.

    Where both do not fit, the left one is cut, or with ``left_first`` the right one goes. One that ``wraps`` takes a
    few lines instead, where the terminal has some to spare.
    """

    DEFAULT_CSS = "Line { height: 1; } Line.wraps { height: auto; }"

    def __init__(
        self, *, style: str = "bold", left_first: bool = False, wraps: bool = False, id: str | None = None
    ) -> None:
        super().__init__(id=id, classes="wraps" if wraps else None)
        self._style = style
        self._left_first = left_first
        self._wraps = wraps
        self.left = ""
        self.right = ""

    def show(self, left: str | None = None, right: str | None = None) -> None:
        """Change one side or both; None leaves it."""
        before = self.left, self.right
        self.left = self.left if left is None else inert(left)
        self.right = self.right if right is None else inert(right)
        self.refresh(layout=self._wraps and before != (self.left, self.right))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self._lines(width)), _MOST if viewport.height >= _LOW else 1)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._left_first and cell_len(self.left) > self._space(width):
            text = fit(self.left, width)
        elif self._wraps and self.size.height > 1:
            line = fit(self._lines(width)[y] if y < len(self._lines(width)) else "", self._space(width))
            text = line + (f" {self.right}" if self.right and y == 0 else "")
        else:
            text = fit(self.left, self._space(width)) + (f" {self.right}" if self.right else "")
        return Strip([Segment(fit(text, width), themes.style(self.app.theme, self._style))], width).apply_style(
            self.rich_style
        )

    def _space(self, width: int) -> int:
        return max(width - cell_len(self.right) - 1 if self.right else width, 0)

    def _lines(self, width: int) -> list[str]:
        return wrapped(self.left, self._space(width))


class Tabs(Line):
    """Where one is among the screens. What does not fit loses its name from the last screen on, never its digit."""

    def __init__(self, names: Sequence[str], place: str, *, id: str | None = None) -> None:
        super().__init__(left_first=True, id=id)
        self._names = names
        self._here = next(n for n, name in enumerate(names) if place.startswith(name[:-1]))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        forms = [self._tabs(named) for named in range(len(self._names), -1, -1)]
        beside = [form for form in forms if cell_len(form) + 1 + cell_len(self.right) <= width]
        self.left = (beside or [form for form in forms if cell_len(form) <= width] or forms[-1:])[0]
        return super().render_line(y)

    def _tabs(self, named: int) -> str:
        """With the names of the first ``named`` screens, and of this one."""
        words = [
            f"{n + 1} {name}" if n < named or n == self._here else str(n + 1) for n, name in enumerate(self._names)
        ]
        return "Reef " + "".join(f"[{word}]" if n == self._here else f" {word} " for n, word in enumerate(words))


class Titles(Line):
    """The names of a list's columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__(style="dim")
        self._columns = columns

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        text = "  " + aligned(self._columns, [column.title for column in self._columns], width - 3)
        return Strip([Segment(fit(text, width), Style(dim=True))], width).apply_style(self.rich_style)


class Banner(Line):
    """What is wrong; not there when nothing is."""

    DEFAULT_CSS = "Banner { display: none; }"

    def __init__(self, *, style: str = "error reverse bold", id: str | None = None) -> None:
        super().__init__(style=style, wraps=True, id=id)

    def show(self, left: str | None = None, right: str | None = None) -> None:
        super().show(left, right)
        self.display = bool(self.left)


class Hint(Banner):
    """What a newcomer could do next; not there for who knows."""

    def __init__(self) -> None:
        super().__init__(style="dim")

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return super().get_content_height(container, viewport, width) if viewport.height >= _LOW else 0


class Keys(Widget):
    """The footer: the most useful keys that fit; those that cannot act now stand in brackets, and say why when
    pressed."""

    DEFAULT_CSS = "Keys { height: 1; }"

    def __init__(self, keys: Sequence[Key], blocked: Callable[[str], str | None]) -> None:
        super().__init__()
        self._keys = sorted((key for key in keys if key.rank), key=lambda key: key.rank)
        self._blocked = blocked

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        always = "  ".join(self._word(key) for key in self._keys if key.rank >= ALWAYS)
        line = ""
        for word in (self._word(key) for key in self._keys if key.rank < ALWAYS):
            if cell_len(line) + cell_len(word) + cell_len(always) + 4 <= width:
                line += f"{word}  "
        return Strip([Segment(fit(line + always, width), Style(dim=True))], width).apply_style(self.rich_style)

    def _word(self, key: Key) -> str:
        word = f"{key.shown.split()[0]} {key.label}"
        return f"({word})" if self._blocked(key.id) else word
