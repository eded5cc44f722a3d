"""A chain on one line, cut around what is selected."""

from typing import Any

import pytest

from reef_cli.tui.chain import line
from tests.fakes.dashboard import release as told


def release(number: int, /, held: str | None = None, **changes: Any) -> dict[str, Any]:
    """As the screen keeps one."""
    found = told(number, **changes)
    return {**found, "held": held, "pinned": found["id"] == held}


@pytest.mark.parametrize(
    ("selected", "width", "shown"),
    [
        (9, 200, "default: base → r1 → r2 → r3 → r4 → r5 → r6 → r7 → r8 → [r9*]"),
        (9, 40, "default: … → r5 → r6 → r7 → r8 → [r9*]"),
        (5, 40, "default: … → [r5] → r6 → r7 → r8 → r9*"),
        (1, 40, "default: base → [r1] → r2 → r3 → r4 → …"),
        (1, 5, "default: … → [r1] → …"),
    ],
)
def test_neighbours_are_shown_while_there_is_room(selected: int, width: int, shown: str) -> None:
    chain = [release(n, head=n == 9) for n in range(9, 0, -1)]
    assert line([*chain, release(1, scenario="other")], chain[9 - selected], width) == shown


def test_a_candidate_stands_beside_its_chain() -> None:
    waits = release(2, state="pending", parent="r1-00000001", scenario="a\x1b[2Jb")
    served = release(1, head=True, scenario="a\x1b[2Jb")
    assert line([waits, served], waits, 80) == "a\\x1b[2Jb: base → r1*   [r0-00000002] pending, made from r1"


def test_where_clients_are_held_the_star_is_there_and_not_at_the_head() -> None:
    chain = [release(n, head=n == 3, held="r2-00000002") for n in (3, 2, 1)]
    assert line(chain, chain[0], 80) == "default: base → r1 → r2* held → [r3]"
