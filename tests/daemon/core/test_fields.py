"""The fields of a query, and that all that tells about them tells the same."""

import re

import pytest

from daemon.core.errors import UsageError
from daemon.core.fields import FIELDS, TIMES, Bound, bound, markdown, takes
from daemon.store.query import parse
from reef_cli.commands.traces import search


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("score", "good", Bound("=", 1)),
        ("score", "Bad", Bound("=", 0)),
        ("score", ">=3.5", Bound(">=", 3.5)),
        ("score", "-1", Bound("=", -1)),
        ("tokens", ">50k", Bound(">", 50_000)),
        ("tokens", "<1M", Bound("<", 1_000_000)),
        ("latency", "2", Bound("=", 2_000_000)),
        ("latency", ">250ms", Bound(">", 250_000)),
        ("latency", "<=2m", Bound("<=", 120_000_000)),
    ],
)
def test_a_number_is_read_in_the_stores_unit(name: str, value: str, wanted: Bound) -> None:
    assert bound(name, value) == wanted


@pytest.mark.parametrize("value", ["", ">", "=>1", "1e9", "1_000", "\u0661", "1 OR 1=1", "9" * 13])
def test_what_is_no_number_is_refused_with_what_there_is(value: str) -> None:
    with pytest.raises(UsageError, match="is no number") as caught:
        bound("tokens", value)
    assert caught.value.hint is not None
    assert "tokens:>50k" in caught.value.hint


@pytest.mark.parametrize("known", [*FIELDS.values(), *TIMES.values()], ids=[*FIELDS, *TIMES])
def test_every_example_is_a_query(known: object) -> None:
    example = getattr(known, "example", "")
    assert not parse(example).is_empty
    assert not parse(example).words


@pytest.mark.parametrize("name", [*FIELDS, *TIMES])
def test_every_field_says_what_it_takes(name: str) -> None:
    assert takes(name).startswith(f"{name}: ")
    assert f"`{name}:`" in markdown()


def test_the_help_of_search_names_every_field_and_value() -> None:
    told = set(re.findall(r"[a-z]+", search.__doc__ or ""))
    assert {name for name in (*FIELDS, *TIMES) if name not in told} == set()
    assert {value for known in FIELDS.values() for value in known.values if value not in told} == set()
