"""Marks on a scenario's scale, and what is kept of them."""

import pytest

from daemon.core.errors import UsageError
from reef_cli.conversation import verdict
from reef_cli.scoring import marked, scales, scored, without


@pytest.mark.parametrize(("mark", "share"), [(1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75), (5, 1.0)])
def test_a_mark_is_a_share_of_what_is_possible(mark: int, share: float) -> None:
    said = scored(mark, (1, 5))
    assert said == {"score": share, "metadata": {"scored": mark, "scale": [1, 5]}}
    assert verdict({**said, "feedback": None}) == f"{mark} of 5"


@pytest.mark.parametrize("mark", [0, 6, -1])
def test_a_mark_is_on_the_scale(mark: int) -> None:
    with pytest.raises(UsageError, match=f"score {mark} is not from 1 to 5"):
        scored(mark, (1, 5))


def test_a_score_is_told_as_the_mark_that_it_stands_for() -> None:
    assert [marked(scored(mark, (1, 5))["score"], (1, 5)) for mark in range(1, 6)] == [
        "", "2 of 5", "3 of 5", "4 of 5", "",  # the worst and the best are bad and good
    ]  # fmt: skip
    assert marked(scored(4, (0, 9))["score"], (0, 9)) == "4 of 9"
    assert (marked(0.3, (1, 5)), marked(0.5, None), marked(None, (1, 5)), marked(-3, (1, 5))) == ("", "", "", "")


def test_which_scenarios_score() -> None:
    assert scales({"scores": {"work": [1, 5]}}) == {"work": (1, 5)}
    assert scales({}) == {}  # an older daemon
    assert "'work' knows good and bad" in without("work").message


@pytest.mark.parametrize("metadata", [{}, None, {"scored": "4", "scale": [1, 5]}, {"scored": 4, "scale": 5}])
def test_what_others_put_there_is_no_mark(metadata: dict[str, object] | None) -> None:
    assert verdict({"score": 1.0, "feedback": None, "metadata": metadata}) == "good"
