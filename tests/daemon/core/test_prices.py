"""What an exchange costs, by whom it is known."""

import pytest

from daemon.core.prices import FREE, Price, cost
from daemon.core.records import Usage

USAGE = Usage(prompt=1_000_000, completion=100_000, cached=600_000, written=100_000)


def test_prompt_cache_and_answer_have_their_own_prices() -> None:
    prices = {"m": Price(input=3.0, output=15.0, cached=0.3, cache_write=3.75)}
    assert cost(USAGE, prices, ["m"]) == pytest.approx(0.3 * 3 + 0.6 * 0.3 + 0.1 * 3.75 + 0.1 * 15)


def test_what_has_no_price_of_its_own_costs_as_the_prompt_does() -> None:
    assert cost(USAGE, {"m": Price(input=3.0, output=15.0)}, ["m"]) == pytest.approx(3 + 1.5)


def test_what_the_provider_says_counts_before_any_price() -> None:
    assert cost(Usage(10, 10, cost=0.25), {"m": Price(3.0, 15.0)}, ["m"]) == 0.25
    assert cost(Usage(10, 10, cost=0.0), {"m": Price(3.0, 15.0)}, ["m"]) == 0.0


def test_unknown_is_not_nothing() -> None:
    assert cost(USAGE, {}, ["m"]) is None
    assert cost(USAGE, {"other": Price(1.0, 1.0)}, ["m", None]) is None
    assert cost(Usage(), {"m": Price(1.0, 1.0)}, ["m"]) is None, "nothing was counted"


def test_the_engine_inside_costs_nothing_whatever_was_counted() -> None:
    assert cost(USAGE, FREE, ["m"]) == cost(Usage(), FREE, ["m"]) == 0.0


def test_any_of_the_models_names_finds_its_price_exact_ones_first() -> None:
    million = Usage(prompt=1_000_000)
    prices = {"gpt-*": Price(2.0, 0.0), "gpt-5": Price(1.0, 0.0), "*": Price(9.0, 0.0)}
    assert cost(million, prices, ["gpt-5-2026-08-07", "gpt-5"]) == 1.0
    assert cost(million, prices, ["gpt-6", "alias"]) == 2.0
    assert cost(million, prices, [None, "alias"]) == 9.0


def test_counts_that_contradict_each_other_never_cost_less_than_nothing() -> None:
    assert cost(Usage(prompt=10, cached=20), {"m": Price(1.0, 1.0, cached=0.0)}, ["m"]) == 0.0
