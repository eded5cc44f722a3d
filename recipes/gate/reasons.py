"""Why the gate decided so, one sentence for a person. Says only what the pairs show."""

from collections.abc import Sequence
from typing import Final

from daemon.core.learning import Task
from daemon.core.plaintext import one_line
from daemon.core.releases import GateResult, Guard, Verdict
from recipes.gate.statistics import wins_to_go

_ADD: Final = 'add tasks: reef tasks add "PROMPT" --form one_sentence'
NOTHING_NEW: Final = "nothing in it reaches the model, so there is nothing to compare"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def standing(wins: int, losses: int) -> str:
    return f"{wins} better, {losses} worse"


def faulty(faults: Sequence[str]) -> str:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{faults[0]}{more}"


def worse(wins: int, losses: int) -> str:
    return f"it is worse: {count(losses, 'task')} passed only without it, {wins} only with it"


def lost(guard: Guard, tasks: Sequence[Task]) -> str:
    named = f'"{one_line(tasks[0].prompt, 60)}"'
    if tasks[0].critical:
        return f"it loses a critical task that passed before: {named}"
    return f"it loses {guard.lost} of {guard.tasks} tasks that passed before, {guard.allowed} may be lost: {named}"


def decided(result: GateResult, *, by_rule: bool) -> str:
    """For a result whose regression set holds. ``by_rule``: only what is told differs, not the weights."""
    seen = len(result.pairs)
    if result.verdict is Verdict.ACCEPT:
        return (
            f"it is better: {count(result.wins, 'task')} passed only with it, {result.losses} only without it, "
            f"{count(seen, 'pair')} were enough"
        )
    if not result.planned:
        return f"there are no gate tasks to judge it by; {_ADD}"
    tasks = count(seen, "task")
    if result.incumbent_passed == result.candidate_passed == seen:
        return f"all {tasks} passed with and without it: they cannot tell; add harder ones"
    passed = f"{result.candidate_passed} of {tasks} passed with it, {result.incumbent_passed} without"
    if by_rule and result.candidate_passed * 2 < seen:
        followed = "follows the rules in part only" if result.candidate_passed else "does not follow the rules"
        passed = f"the model {followed}: {passed}"
    more = wins_to_go(result.wins, result.losses, result.alpha)
    return f"{passed}; to tell, it would take {count(more, 'more task')} that only it passes"
