"""A job's numbers as curves, side by side: loss by its steps, scores by the tasks tried. Drawn only as they change.

The plotting library costs a tenth of a second to import: it is, when there is something to draw.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from textual.containers import Horizontal

from reef_cli.tui.text import one_line

if TYPE_CHECKING:
    from textual_plotext import PlotextPlot

#: Where there is room for the curves and for what is read below them; and for more than one beside another.
_LEAST_HEIGHT: Final = 18
_LEAST_WIDTH: Final = 30
#: Told apart by more than colour.
_MARKERS: Final = ("braille", ".", "x", "+")
_TICKS: Final = 5
#: More of them would be the axis' labels, 1e-300 in full.
_DIGITS: Final = 9
#: Columns that a plot's title leaves free.
_AXIS: Final = 4

Points = Sequence[Sequence[float]]


class Curves(Horizontal):
    DEFAULT_CSS = "Curves { height: 9; display: none; }"

    def __init__(self) -> None:
        super().__init__()
        self._plots: dict[str, PlotextPlot] = {}
        self._shown: object = None

    def show(self, curves: Sequence[Mapping[str, Any]], width: int, height: int) -> None:
        """``curves`` as the daemon tells them; in a terminal of that size. Those of one kind share a plot."""
        groups: dict[str, dict[str, Points]] = {}
        for curve in curves:
            kind, _, name = str(curve["name"]).partition(": ")
            if len(curve["points"]) > 1:  # one point is no curve
                groups.setdefault(one_line(kind, 20), {})[one_line(name, 20)] = curve["points"]
        groups = dict(list(groups.items())[-max(width // _LEAST_WIDTH, 1) :])
        self.display = bool(groups) and height >= _LEAST_HEIGHT
        if not self.display or groups == self._shown:
            return
        self._shown = groups
        if list(groups) != list(self._plots):
            self._replace(groups)
        for kind, series in groups.items():
            _draw(self._plots[kind], kind, series, width // len(groups) - _AXIS)

    def _replace(self, kinds: Mapping[str, object]) -> None:
        from textual_plotext import PlotextPlot

        for plot in self._plots.values():
            plot.remove()
        self._plots = {kind: PlotextPlot() for kind in kinds}
        for plot in self._plots.values():
            plot.theme = "clear"  # the terminal's own colours: the theme's are for the person to choose
            self.mount(plot)


def _draw(plot: "PlotextPlot", kind: str, series: Mapping[str, Points], width: int) -> None:
    figure = plot.plt
    figure.clear_data()
    for n, (name, points) in enumerate(series.items()):
        places, values = zip(*points, strict=True)
        shown = [round(value, _DIGITS) for value in values]
        figure.plot(list(places), shown, marker=_MARKERS[n % len(_MARKERS)], label=name or None)
    every = sorted({int(place) for points in series.values() for place, _ in points})
    count = min(len(every), _TICKS)
    ticks = [every[n * (len(every) - 1) // (count - 1)] for n in range(count)]
    figure.xticks(list(map(float, ticks)), [str(tick) for tick in ticks])
    title = f"{kind}: {', '.join(f'{name} {points[-1][1]:.3g}'.strip() for name, points in series.items())}"
    figure.title(title if len(title) <= width else kind)
    plot.refresh()
