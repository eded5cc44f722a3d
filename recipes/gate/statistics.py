"""What paired answers prove: two exact numbers from wins and losses, pure arithmetic.

Every pair is one task answered by the incumbent and by the candidate; only discordant pairs speak (a win: the
candidate alone passes; a loss: the incumbent alone). Under the null hypothesis, "the candidate is no better", a
discordant pair is a win with probability at most 1/2. The promise that the gate makes to a person, that at most
``alpha`` of the candidates that are no better are accepted however often one looks, breaks with a number here.
"""

import math
from fractions import Fraction
from typing import Final

#: Sums are scaled down when they pass this, so that thousands of wins stay within a float.
_LARGE: Final = 1e250
#: Error rate at which a candidate is called worse. Turning one down costs power only, so it is not spent.
_WORSE: Final = 0.1


def mcnemar_p(wins: int, losses: int) -> float:
    """P(Bin(wins + losses, 1/2) >= wins): McNemar's exact test, one-sided (METHODS R2; McNemar 1947).

    Valid for one look at a number of pairs fixed before. Exact: a quotient of integers, rounded once.
    """
    pairs = wins + losses
    term: int = 1
    total: int = 1  # from all wins downwards: C(n, n), C(n, n-1), ...
    for k in range(pairs, wins, -1):
        term = term * k // (pairs - k + 1)
        total += term
    return float(Fraction(total, 1 << pairs))


def log_e_value(wins: int, losses: int) -> float:
    """Natural logarithm of `e_value`; relative error below (wins + losses) * 2**-52."""
    pairs = wins + losses
    term = total = 1.0
    scaled = 0
    for k in range(wins, 0, -1):
        term *= k / (pairs + 2 - k)
        total += term
        if total > _LARGE:
            term, total, scaled = term / _LARGE, total / _LARGE, scaled + 1
        elif term < total * 1e-19 and 2 * k < pairs:
            break  # terms only fall from here on
    return math.log(total) + scaled * math.log(_LARGE) - math.log(losses + 1)


def e_value(wins: int, losses: int) -> float:
    """The evidence that the candidate is better, valid at any time (METHODS R3).

    E(b, c) = 2^(b+c+1) * B(b+1, c+1) * P(Bin(b+c+1, 1/2) <= b): the likelihood of b wins and c losses under a win
    probability uniform on (1/2, 1], relative to 1/2. A non-negative martingale that starts at 1 where 1/2 holds, so by
    Ville's inequality P(it ever reaches 1/alpha) <= alpha, and one may look after every pair. Here in the equal form
    (1/(c+1)) * sum over k <= b of C(b+c+1, k) / C(b+c+1, b), all terms positive: nothing cancels. At most 1e308.
    """
    return math.exp(min(log_e_value(wins, losses), 709.0))


def spent(alpha: float, candidate: int) -> float:
    """The error rate at which the n-th candidate (from 1) is judged by the same tasks: alpha / n^2 (METHODS R6).

    Whoever tries often enough gets lucky: at alpha each, one of ten equal candidates passes in two times out of three.
    So spent, the chance that any of all that are no better passes stays below alpha * pi^2 / 6 = 1.65 alpha.
    """
    return alpha / candidate**2


def is_better(wins: int, losses: int, alpha: float) -> bool:
    """Whether the candidate is shown to be better at error rate ``alpha``: E >= 1/alpha."""
    return log_e_value(wins, losses) >= -math.log(alpha)


def is_worse(wins: int, losses: int) -> bool:
    """Futility: whether the same test with the roles exchanged shows the candidate to be worse (METHODS R3: at 10)."""
    return is_better(losses, wins, _WORSE)


def wins_to_go(wins: int, losses: int, alpha: float) -> int:
    """How many more wins without a further loss would make the candidate better at ``alpha``."""
    more = 0
    while not is_better(wins + more, losses, alpha):
        more += 1
    return more
