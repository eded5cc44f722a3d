"""What every part of the bench says at its end: one figure beside its bound, kept for the table of ``python -m bench``.

And the tables in the README, replaced between their markers, so that what stands there was measured.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

#: Where the parts leave their figures for the whole, a line each.
PLACE: Final = "REEF_BENCH_FIGURES"


@dataclass(frozen=True)
class Figure:
    """``bound`` is the most that ``value`` may be, the least where ``at_least``; None: only told."""

    name: str
    value: float
    bound: float | None = None
    unit: str = ""
    at_least: bool = False

    @property
    def good(self) -> bool:
        return self.bound is None or (self.value >= self.bound if self.at_least else self.value <= self.bound)

    def __str__(self) -> str:
        bound = "" if self.bound is None else f"   {'≥' if self.at_least else '≤'} {_number(self.bound)}"
        verdict = "" if self.good else "MISSED"
        return f"{self.name:<52}{_number(self.value):>10} {self.unit:<3}{bound:<12}{verdict}".rstrip()


def _number(value: float) -> str:
    """Ratios below one as a person says them."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 or value == 0 else f"1/{1 / value:.1f}"


def tell(figure: Figure) -> bool:
    """Print it, and keep it for the whole; whether it is as it should be."""
    print(figure)
    if place := os.environ.get(PLACE):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(figure)) + "\n")
    return figure.good


def kept(place: Path) -> Iterator[Figure]:
    for line in place.read_text("utf-8").splitlines():
        yield Figure(**json.loads(line))


def write(path: Path, name: str, text: str) -> None:
    """Put ``text`` between the file's markers of that name."""
    opening, closing = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, found, rest = path.read_text("utf-8").partition(opening)
    _, end, after = rest.partition(closing)
    if not found or not end:
        raise SystemExit(f"{path} has no place for {name!r}: {opening.strip()} … {closing.strip()}")
    path.write_text(before + opening + text + closing + after, "utf-8")
