"""The card as a person sees it, for every kind of release."""

from dataclasses import replace

import pytest

from daemon.core.releases import GateResult, Guard, Pair, Release, ReleaseKind, ReleaseState, Verdict, Weights
from recipes.gate import card

PAIRS = (
    Pair("tsk_1", "What is rain?", False, True, "Rain is. It falls.", "Rain is water that falls from clouds."),
    Pair("tsk_2", "What is\nsnow?", True, False, "Snow is ice.", "Well. Snow\x1b[31m is many things."),
    Pair("tsk_3", "What is hail?", True, True, "Hail.", "Hail is ice."),
    Pair("tsk_4", "What is fog?", False, True, "Fog? " * 60, "Fog is a cloud on the ground."),
)
GATE = GateResult(
    verdict=Verdict.ACCEPT,
    reason="it is better: 8 tasks passed only with it, 1 only without it, 11 pairs were enough",
    alpha=0.1, wins=8, losses=1, ties=2, e_value=11.2555, p_value=0.01953, planned=40,
    incumbent_passed=3, candidate_passed=10, guard=Guard(12, 11, 1, 1, True), pairs=PAIRS,
)  # fmt: skip
RELEASE = Release(
    id="r7-1a2b3c4d", scenario="default", number=7, kind=ReleaseKind.LEARNED, parent="r6-00000000",
    created_ns=1_700_000_000_000_000_000, reason='rule added: "Answer in one short sentence."', recipe="playbook",
    reports=("rep_1", "rep_2"), records=("rec_1",), files={"harness/playbook.md": "0" * 64}, gate=GATE, head=True,
)  # fmt: skip


def lines(release: Release) -> list[str]:
    shown = card.text(release).splitlines()
    assert len(shown) <= 24
    assert all(len(line) <= 80 and line.isprintable() for line in shown)
    return shown


def test_the_whole_card() -> None:
    """BUGS B199."""
    assert card.text(RELEASE) == (
        "verdict   accepted: it is better: 8 tasks passed only with it, 1 only\n"
        "          without it, 11 pairs were enough\n"
        "release   r7-1a2b3c4d, serves, 2023-11-14 22:13 UTC\n"
        'what      rule added: "Answer in one short sentence."\n'
        "tasks     before 3 of 11 passed, after 10 of 11\n"
        "pairs     8 only after, 1 only before, 2 the same; 11 of 40 were run\n"
        "evidence  11.3 for better, 10 needed (alpha 0.1); p 0.0195\n"
        "guard     11 of 12 that passed before still pass; 1 may be lost\n"
        "learned   from 2 reports, 1 answer, by recipe playbook\n"
        "holds     harness of 1 file; follows r6-00000000\n"
        "  “What is snow?”\n"
        "    before pass  Snow is ice.\n"
        "    after  fail  Well. Snow?[31m is many things.\n"
        "  “What is rain?”\n"
        "    before fail  Rain is. It falls.\n"
        "    after  pass  Rain is water that falls from clouds.\n"
        "  “What is fog?”\n"
        f"    before fail  {'Fog? ' * 11}Fog…\n"
        "    after  pass  Fog is a cloud on the ground."
    )


def test_a_rollback_was_not_judged() -> None:
    shown = lines(
        replace(RELEASE, kind=ReleaseKind.ROLLBACK, gate=None, restores="r5-11111111", recipe=None, reason="too terse")
    )
    assert shown[0] == "verdict   none: it is r5-11111111 again"
    assert not any(line.startswith(("tasks", "evidence", "learned")) for line in shown)


@pytest.mark.parametrize("judged", [True, False])
def test_an_unproven_release_says_so_first(judged: bool) -> None:
    gate = replace(GATE, verdict=Verdict.INCONCLUSIVE, reason="1 of 4 tasks passed", guard=None) if judged else None
    shown = lines(replace(RELEASE, kind=ReleaseKind.UNPROVEN, gate=gate))
    assert "unproven" in shown[0]
    assert ("inconclusive" in " ".join(shown[:2])) is judged


@pytest.mark.parametrize(
    ("state", "says"), [(ReleaseState.PENDING, "waits for your yes or no"), (ReleaseState.REJECTED, "not released")]
)
def test_a_candidate_says_where_it_stands(state: ReleaseState, says: str) -> None:
    assert says in lines(replace(RELEASE, state=state, head=False))[2]
    unproven = card.text(replace(RELEASE, kind=ReleaseKind.UNPROVEN, state=state, head=False))
    assert "a person released it" not in unproven


def test_nothing_was_run() -> None:
    gate = replace(GATE, verdict=Verdict.REJECT, wins=0, losses=0, ties=0, pairs=(), guard=None, reason="line 2 …")
    shown = lines(replace(RELEASE, gate=gate))
    assert not any(line.startswith(("tasks", "pairs", "evidence")) for line in shown)


def test_the_longest_of_everything_still_fits() -> None:
    long = "wörter und ein sehr langes Wort " * 40 + "漢字" * 200
    pairs = tuple(replace(pair, prompt=long, incumbent_answer=long, candidate_answer=long * 3) for pair in PAIRS)
    weights = Weights("a" * 64, "b" * 64, 4_900_000, 16, 32.0)
    gate = replace(GATE, reason=long, pairs=pairs, e_value=1e308, p_value=1e-300, planned=10**6)
    shown = lines(replace(RELEASE, reason=long, gate=gate, weights=weights, recipe="x" * 200, id="r" * 100))
    assert len(shown) == 22
    assert any("LoRA rank 16, 4.9 MB" in line for line in shown)
