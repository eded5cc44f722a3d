"""Spans and moments as people write them."""

import time

import pytest

from daemon.core.errors import UsageError
from reef_cli import times


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("30d", 2_592_000)])
def test_spans(text: str, seconds: int) -> None:
    assert times.seconds(text, "--for") == seconds
    assert abs(times.moment_ns(text, "--before") - (time.time_ns() - seconds * 10**9)) < 10**10


def test_a_date_begins_at_this_machines_midnight() -> None:
    moment = times.moment_ns("2026-01-31", "--before") / 1e9
    assert time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) == "2026-01-31 00:00:00"
    assert times.moment_ns("2026-01-31T12:30", "--before") / 1e9 == moment + 45_000


@pytest.mark.parametrize("text", ["", "1", "1y", "31.01.2026", "2026-13-01", "-1h", "²s", "9999999999d"])
def test_nonsense_is_named_with_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--before"):
        times.moment_ns(text, "--before")
    with pytest.raises(UsageError, match="--for"):
        times.seconds(text, "--for")
