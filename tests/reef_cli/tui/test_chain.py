"""A chain on one line, cut around what is selected."""

import pytest

from reef_cli.tui.chain import line
from tests.fakes.dashboard import release


@pytest.mark.parametrize(
    ("selected", "width", "told"),
    [
        (9, 200, "default: base → r1 → r2 → r3 → r4 → r5 → r6 → r7 → r8 → [r9*]"),
        (9, 40, "default: … → r5 → r6 → r7 → r8 → [r9*]"),
        (5, 40, "default: … → [r5] → r6 → r7 → r8 → r9*"),
        (1, 40, "default: base → [r1] → r2 → r3 → r4 → …"),
        (1, 5, "default: … → [r1] → …"),
    ],
)
def test_neighbours_are_shown_while_there_is_room(selected: int, width: int, told: str) -> None:
    chain = [release(n, head=n == 9) for n in range(9, 0, -1)]
    assert line([*chain, release(1, scenario="other")], chain[9 - selected], width) == told


def test_a_candidate_stands_beside_its_chain() -> None:
    waits = release(2, state="pending", parent="r1-00000001", scenario="a\x1b[2Jb")
    served = release(1, head=True, scenario="a\x1b[2Jb")
    assert line([waits, served], waits, 80) == "a\\x1b[2Jb: base → r1*   [r0-00000002] pending, made from r1"
