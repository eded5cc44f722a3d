"""Where two sequences part."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from daemon.core.prefix import shared


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_shared_counts_leading_items(one: list[int], other: list[int]) -> None:
    slow = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert shared(one, other) == slow
    assert shared(array("I", one), array("I", other)) == slow
    assert shared(bytearray(one), bytes(other)) == slow
