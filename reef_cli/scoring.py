"""Scores on a scenario's own scale (1 to 5), as the daemon keeps them: 0 to 1, beside what was given.

Everything that learns takes a score as a share of what is possible: 3 of 5 is half, neither good nor bad.
"""

from collections.abc import Mapping
from typing import Any

from daemon.core.errors import UsageError

#: The lowest and the highest mark.
Scale = tuple[int, int]


def scales(status: Mapping[str, Any]) -> dict[str, Scale]:
    """The scenarios that score, of ``GET /reef/status``; an older daemon has none."""
    return {str(name): (int(low), int(high)) for name, (low, high) in status.get("scores", {}).items()}


def scored(mark: int, scale: Scale) -> dict[str, Any]:
    """What a report of that mark holds. Raises UsageError for one beside the scale."""
    low, high = scale
    if not low <= mark <= high:
        raise UsageError(f"score {mark} is not from {low} to {high}")
    return {"score": (mark - low) / (high - low), "metadata": {"scored": mark, "scale": [low, high]}}


def marked(score: float | None, scale: Scale | None) -> str:
    """``4 of 5``: the mark between the worst and the best that a score stands for; empty for any other."""
    if score is None or scale is None or not 0 < score < 1:
        return ""
    low, high = scale
    mark = low + score * (high - low)
    return f"{round(mark)} of {high}" if abs(mark - round(mark)) < 1e-6 else ""


def without(scenario: str) -> UsageError:
    """Why an answer of that scenario cannot be scored."""
    return UsageError(
        f"scenario {scenario!r} knows good and bad, no scores",
        hint="in config.yaml: scenarios: {NAME: {scores: [1, 5]}}, then reef restart",
    )
