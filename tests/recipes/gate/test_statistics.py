"""The tables that were worked out before, exact references, and error rates under peeking."""

import functools
import math
import random
from fractions import Fraction

import pytest

from recipes.gate.statistics import e_value, is_better, is_worse, log_e_value, mcnemar_p, spent, wins_to_go

RUNS = 4000


def exact_e(wins: int, losses: int) -> Fraction:
    """The definition in integers: 2^(n+1) * B(b+1, c+1) * P(Bin(n+1, 1/2) <= b); the powers of two cancel."""
    n = wins + losses
    beta = Fraction(math.factorial(wins) * math.factorial(losses), math.factorial(n + 1))
    return beta * sum(math.comb(n + 1, k) for k in range(wins + 1))


@pytest.mark.parametrize(
    ("wins", "losses", "value"), [(4, 0, 6.2), (5, 0, 10.5), (8, 1, 11.3), (11, 2, 14.9), (13, 3, 13.7)]
)
def test_e_values_of_the_table(wins: int, losses: int, value: float) -> None:
    assert round(e_value(wins, losses), 1) == value


@pytest.mark.parametrize(
    ("alpha", "least"), [(0.1, {0: 5, 1: 8, 2: 11, 3: 13}), (0.05, {0: 7, 1: 10, 2: 12}), (0.01, {0: 9})]
)
def test_fewest_wins_that_accept_while_peeking(alpha: float, least: dict[int, int]) -> None:
    for losses, wins in least.items():
        assert is_better(wins, losses, alpha)
        assert not is_better(wins - 1, losses, alpha)
        assert wins_to_go(0, losses, alpha) == wins


@pytest.mark.parametrize(("alpha", "least"), [(0.1, {0: 4, 1: 6, 2: 7, 3: 9}), (0.05, {0: 5, 1: 7, 2: 9, 3: 10})])
def test_fewest_wins_of_the_fixed_test(alpha: float, least: dict[int, int]) -> None:
    for losses, wins in least.items():
        assert mcnemar_p(wins, losses) <= alpha < mcnemar_p(wins - 1, losses)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (0, 9), (3, 3), (17, 4), (40, 160), (200, 150), (0, 400)])
def test_e_value_is_the_definition(wins: int, losses: int) -> None:
    assert e_value(wins, losses) == pytest.approx(float(exact_e(wins, losses)), rel=1e-12)


def test_p_value_is_the_tail_of_the_binomial() -> None:
    for wins, losses in ((0, 0), (5, 0), (7, 2), (0, 6), (30, 31)):
        tail = Fraction(sum(math.comb(wins + losses, k) for k in range(wins, wins + losses + 1)), 2 ** (wins + losses))
        assert mcnemar_p(wins, losses) == float(tail)


def test_thousands_of_pairs_neither_overflow_nor_vanish() -> None:
    exact = exact_e(1400, 700)
    assert log_e_value(1400, 700) == pytest.approx(math.log(exact.numerator) - math.log(exact.denominator), rel=1e-12)
    assert log_e_value(20_000, 0) == pytest.approx(20_001 * math.log(2) - math.log(20_001), rel=1e-9)
    assert math.isfinite(e_value(20_000, 0))
    assert 0 < e_value(0, 20_000) < 1e-4
    assert mcnemar_p(5000, 0) == 0.0


def test_a_win_raises_and_a_loss_lowers_the_evidence() -> None:
    for wins in range(12):
        for losses in range(12):
            assert e_value(wins + 1, losses) > e_value(wins, losses) > e_value(wins, losses + 1)


def test_evidence_is_a_fair_game_when_the_candidate_is_equal() -> None:
    """E(b, c) = (E(b+1, c) + E(b, c+1)) / 2: what makes peeking harmless."""
    for wins in range(10):
        for losses in range(10):
            assert (exact_e(wins + 1, losses) + exact_e(wins, losses + 1)) / 2 == exact_e(wins, losses)


# -- error rates --------------------------------------------------------------------------------------


@functools.cache
def looked(wins: int, losses: int, alpha: float) -> str:
    if is_better(wins, losses, alpha):
        return "better"
    return "worse" if is_worse(wins, losses) else ""


def judged(base: float, better: float, tasks: int, *, alpha: float, chance: random.Random) -> str:
    """One gate that looks after every pair; both answers independent, as is worst for it."""
    wins = losses = 0
    for _ in range(tasks):
        incumbent, candidate = chance.random() < base, chance.random() < better
        wins += candidate and not incumbent
        losses += incumbent and not candidate
        said = looked(wins, losses, alpha)
        if said:
            return said
    return ""


def rate(base: float, better: float, tasks: int, *, alpha: float = 0.1, says: str = "better") -> float:
    chance = random.Random(f"{base} {better} {tasks} {alpha}")
    return sum(judged(base, better, tasks, alpha=alpha, chance=chance) == says for _ in range(RUNS)) / RUNS


def tolerance(probability: float) -> float:
    """Four standard errors of a share among RUNS: once in 30,000 by chance."""
    return 4 * math.sqrt(probability * (1 - probability) / RUNS)


def exact_rate(tasks: int, win: float, loss: float, alpha: float) -> float:
    """The probability that "better" is ever said within ``tasks`` pairs, by summing over all courses."""
    states, said = {(0, 0): 1.0}, 0.0
    for _ in range(tasks):
        following: dict[tuple[int, int], float] = {}
        for (wins, losses), p in states.items():
            for state, share in (
                ((wins + 1, losses), win), ((wins, losses + 1), loss), ((wins, losses), 1 - win - loss)
            ):  # fmt: skip
                word = looked(*state, alpha)
                if word == "better":
                    said += p * share
                elif not word:
                    following[state] = following.get(state, 0.0) + p * share
        states = following
    return said


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.25])
@pytest.mark.parametrize("base", [0.02, 0.1, 0.5, 0.9])
def test_an_equal_candidate_is_accepted_at_most_alpha(base: float, alpha: float) -> None:
    """Peeking after each of 100 pairs, at several rates of passing: simulated, and exactly."""
    discordant = base * (1 - base)
    exact = exact_rate(100, discordant, discordant, alpha)
    assert exact <= alpha
    assert rate(base, base, 100, alpha=alpha) == pytest.approx(exact, abs=tolerance(exact) + 1 / RUNS)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_an_equal_candidate_is_held_off_where_every_pair_counts(alpha: float) -> None:
    """Every pair discordant, 200 of them: the most looks that matter there can be."""
    assert exact_rate(200, 0.5, 0.5, alpha) <= alpha


@pytest.mark.parametrize(
    ("base", "better", "tasks", "power"),
    [
        (0.0, 0.95, 12, 1.0), (0.1, 0.9, 12, 0.99), (0.0, 0.5, 12, 0.81), (0.0, 0.5, 20, 0.996),
        (0.0, 0.25, 40, 0.985), (0.5, 0.95, 20, 0.90), (0.5, 0.95, 40, 0.99), (0.5, 0.8, 40, 0.74),
    ],
)  # fmt: skip
def test_a_better_candidate_is_accepted_as_often_as_measured_before(
    base: float, better: float, tasks: int, power: float
) -> None:
    # The figure was itself a share of about as many runs, given to a percent.
    assert rate(base, better, tasks) == pytest.approx(power, abs=2 * tolerance(power) + 0.006)


@pytest.mark.parametrize(("base", "worse"), [(0.5, 0.4), (0.9, 0.7), (0.3, 0.0)])
def test_a_worse_candidate_is_hardly_ever_accepted(base: float, worse: float) -> None:
    equal = base * (1 - base)
    assert rate(base, worse, 60) <= exact_rate(60, equal, equal, 0.1)
    assert rate(base, worse, 60) <= 0.02


def test_a_much_worse_candidate_is_shown_to_be_worse() -> None:
    assert rate(0.9, 0.1, 20, says="worse") >= 0.99


def test_trying_often_does_not_help() -> None:
    """Equal candidates, one after another, judged by the same number of tasks with peeking (METHODS R6)."""
    each, alpha = 0.25, 0.1
    naive = spending = 1.0
    for number in range(1, 31):
        naive *= 1 - exact_rate(40, each, each, alpha)
        spending *= 1 - exact_rate(40, each, each, spent(alpha, number))
    assert 1 - naive > 0.6, "at alpha each, one gets through"
    assert 1 - spending <= alpha * math.pi**2 / 6
    assert [wins_to_go(0, 0, spent(alpha, number)) for number in (1, 2, 3, 10)] == [5, 8, 9, 13]


def test_an_equal_candidate_is_called_worse_at_most_alpha() -> None:
    assert rate(0.5, 0.5, 60, says="worse") <= 0.1 + tolerance(0.1)


def test_accepting_whatever_has_the_higher_share_would_release_almost_half_of_the_equal_ones() -> None:
    """Why the gate is more than a comparison of two shares."""
    chance = random.Random(3)
    accepted = 0
    for _ in range(RUNS):
        wins = sum(chance.random() < 0.5 for _ in range(20))
        accepted += wins > sum(chance.random() < 0.5 for _ in range(20))
    assert accepted / RUNS > 0.35
