"""A scenario's releases as one line, the oldest first: ``default: base → r1 → [r2*]``. Pure.

A star is what serves, brackets are what is selected; ``r3=r1`` went back. Where the line is too long its far ends go.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from adapters.delivery import short
from reef_cli import decisions
from reef_cli.tui.text import inert

_ARROW, _MORE = " → ", "…"


def line(releases: Sequence[Mapping[str, Any]], selected: Mapping[str, Any], width: int) -> str:
    """Of the scenario of ``selected``, in at most ``width`` columns where that is at all possible."""
    scenario = selected["scenario"]
    chain = sorted(
        (one for one in releases if one["scenario"] == scenario and one["state"] == "released"),
        key=lambda one: int(one["number"]),
    )
    names = ["base", *(_name(one, one["id"] == selected["id"]) for one in chain)]
    tail = ""
    if selected["state"] == "released":
        at = next((n for n, one in enumerate(chain, 1) if one["id"] == selected["id"]), len(chain))
    else:  # a candidate stands beside the chain
        made = short(str(selected["parent"]))
        tail = inert(f"   [{selected['id']}] {decisions.state(selected)}, made from {made}")
        at = len(chain)
    head = f"{inert(scenario)}: "
    return head + _around(names, at, width - cell_len(head) - cell_len(tail)) + tail


def _name(release: Mapping[str, Any], chosen: bool) -> str:
    back = f"={short(str(release['restores']))}" if release["restores"] else ""
    serves = decisions.serves(release)
    mark = f"{'*' if serves else ''}{' held' if release['pinned'] else ''}"
    name = inert(f"{short(release['id'])}{back}{mark}")
    return f"[{name}]" if chosen else name


def _around(names: Sequence[str], at: int, width: int) -> str:
    """As many neighbours of the one at ``at`` as there is room for, the later ones first."""

    def joined(first: int, last: int) -> str:
        ends = ([_MORE] if first else []), ([_MORE] if last < len(names) - 1 else [])
        return _ARROW.join([*ends[0], *names[first : last + 1], *ends[1]])

    first = last = at
    while last < len(names) - 1 and cell_len(joined(first, last + 1)) <= width:
        last += 1
    while first and cell_len(joined(first - 1, last)) <= width:
        first -= 1
    return joined(first, last)
