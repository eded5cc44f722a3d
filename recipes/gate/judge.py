"""The gate: whether a candidate is better than what serves, by generation and each task's check, pair by pair.

Verdicts keep their promise (METHODS R3): a candidate that is no better is accepted at most ``alpha`` of the time,
though every pair is looked at. That breaks if the order of tasks depends on answers, if one prompt counts twice, if a
pair is left out or run again until it fits, or if anything but answers and checks decides (log-probabilities accepted a
half-shuffled signal 40-0). Answers are greedy (temperature 0), and the engine inside gives the same one each time
(`daemon.engines.llama.alone`): with answers that moved with what else it was doing, one rule was accepted in some runs
and turned down in others for facts that it lost or not. So no noise floor (R13) is measured. A provider's noise falls
on both sides alike: that costs power, and only the regression set, a count, may be decided by it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daemon.core.learning import Task
from daemon.core.releases import GateResult, Guard, Pair, Verdict
from recipes.base import Context
from recipes.gate import hard, reasons
from recipes.gate.pairs import Pairing, independent, ordered
from recipes.gate.statistics import e_value, is_better, is_worse, mcnemar_p
from recipes.gate.variant import Variant


@dataclass(slots=True)
class Score:
    """What the gate tasks have shown so far."""

    alpha: float
    planned: int
    pairs: list[Pair]

    @property
    def wins(self) -> int:
        return sum(pair.candidate and not pair.incumbent for pair in self.pairs)

    @property
    def losses(self) -> int:
        return sum(pair.incumbent and not pair.candidate for pair in self.pairs)

    @property
    def before(self) -> int:
        return sum(pair.incumbent for pair in self.pairs)

    @property
    def after(self) -> int:
        return sum(pair.candidate for pair in self.pairs)

    @property
    def verdict(self) -> Verdict:
        """Of the gate tasks alone."""
        if is_better(self.wins, self.losses, self.alpha):
            return Verdict.ACCEPT
        return Verdict.REJECT if is_worse(self.wins, self.losses) else Verdict.INCONCLUSIVE

    def result(self, verdict: Verdict, reason: str, guard: Guard | None, began: float) -> GateResult:
        return GateResult(
            verdict=verdict,
            reason=reason,
            alpha=self.alpha,
            wins=self.wins,
            losses=self.losses,
            ties=len(self.pairs) - self.wins - self.losses,
            e_value=e_value(self.wins, self.losses),
            p_value=mcnemar_p(self.wins, self.losses),
            planned=self.planned,
            incumbent_passed=self.before,
            candidate_passed=self.after,
            guard=guard,
            pairs=tuple(self.pairs),
            seconds=round(time.monotonic() - began, 3),
        )


def holds(result: GateResult, alpha: float) -> bool:
    """Whether an acceptance follows from its own numbers at this error rate.

    A recipe runs in the process that judges it, so the daemon does this sum again; whether the answers were ever given
    it cannot know.
    """
    counted = is_better(result.wins, result.losses, alpha) and result.wins + result.losses <= result.planned
    return counted and (result.guard is None or result.guard.passed)


def judge(  # noqa: PLR0913 - the whole comparison in one call; everything by keyword
    context: Context,
    *,
    tasks: Sequence[Task],
    regression: Sequence[Task],
    incumbent: Variant,
    candidate: Variant,
    alpha: float,
    lost_allowed: int,
    done: Sequence[Pair] = (),
    on_pair: Callable[[Pair], None],
) -> GateResult:
    """Compare the two and decide.

    ACCEPT: e-value >= 1/alpha (the first time it is, then no more pairs run) and the regression set holds. REJECT: a
    hard fault, the reverse e-value >= 10, or a regression set that does not hold. INCONCLUSIVE: neither, with what
    it would take. ``done`` are pairs that this job ran before: they are taken as they are and the result is the same;
    ``on_pair`` hears each new one, of both sets, as soon as it is known. ``pairs`` of the result are the gate tasks'.
    """
    began = time.monotonic()
    counted = independent(tasks)
    score = Score(alpha, len(counted), [])
    faults = hard.faults(incumbent, candidate)
    if faults:
        return score.result(Verdict.REJECT, reasons.faulty(faults), None, began)
    if incumbent.told() == candidate.told() and incumbent.which is candidate.which:
        return score.result(Verdict.INCONCLUSIVE, reasons.NOTHING_NEW, None, began)
    pairing = Pairing(context, incumbent, candidate, {pair.task: pair for pair in done}, on_pair)
    if left := len(tasks) - len(counted):
        context.say(f"{left} of {len(tasks)} gate tasks ask what another one asks: each prompt counts once")
    context.progress("gate", 0, score.planned)
    for pair in pairing.run(counted):
        score.pairs.append(pair)
        context.progress("gate", len(score.pairs), score.planned, reasons.standing(score.wins, score.losses))
        if score.verdict is not Verdict.INCONCLUSIVE:
            break
    if score.verdict is Verdict.REJECT:
        return score.result(Verdict.REJECT, reasons.worse(score.wins, score.losses), None, began)
    guard, lost = _guarded(pairing, regression, lost_allowed)
    if guard is not None and not guard.passed:
        return score.result(Verdict.REJECT, reasons.lost(guard, lost), guard, began)
    by_rule = incumbent.which is candidate.which
    result = score.result(score.verdict, "", guard, began)
    return score.result(score.verdict, reasons.decided(result, by_rule=by_rule), guard, began)


def _guarded(pairing: Pairing, regression: Sequence[Task], allowed: int) -> tuple[Guard | None, list[Task]]:
    """The regression set, run whole, and the tasks that the candidate loses, critical ones first."""
    if not regression:
        return None, []
    held, lost = 0, []
    order = ordered(regression)
    for number, (task, pair) in enumerate(zip(order, pairing.run(order), strict=True), 1):
        held += pair.incumbent and pair.candidate
        if pair.incumbent and not pair.candidate:
            lost.append(task)
        pairing.context.progress("gate", number, len(order), "regression")
    lost.sort(key=lambda task: not task.critical)
    passed = len(lost) <= allowed and not any(task.critical for task in lost)
    return Guard(tasks=held + len(lost), held=held, lost=len(lost), allowed=allowed, passed=passed), lost
