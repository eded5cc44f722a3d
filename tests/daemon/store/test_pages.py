"""Pages and their cursors."""

import pytest

from daemon.core.errors import UsageError
from daemon.store.pages import cursor_value, page, page_size


def test_a_page_is_cut_and_says_where_it_goes_on() -> None:
    rows = [(9, "a"), (8, "b"), (7, "c")]
    assert page(rows, 2) == (rows[:2], "8")
    assert page(rows, 3) == (rows, None)
    assert page([], 3) == ([], None)


def test_limits_and_cursors_are_checked() -> None:
    assert (page_size(7), page_size(10**9)) == (7, 1000)
    assert cursor_value("9223372036854775807") == 2**63 - 1
    for odd in ("9223372036854775808", "0x1", "1 ", "²"):
        with pytest.raises(UsageError):
            cursor_value(odd)
