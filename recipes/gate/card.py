"""The release card: what a release is and how it was judged, in at most 24 lines of 80 columns, in plain words.

Reads a `Release` and nothing else, so it can be shown long after the job is gone. The verdict and its reason come
first; samples show a loss where there is one, not only wins.
"""

import textwrap
import time
from typing import Final

from daemon.core.harness import ROUTING
from daemon.core.plaintext import one_line
from daemon.core.releases import PERSON, GateResult, Pair, Release, ReleaseKind, ReleaseState, Verdict
from recipes.gate.reasons import count

_WIDTH: Final = 76  # the dashboard has a margin and a scroll bar, in a terminal of 80
_LABEL: Final = 10
_SAMPLES: Final = 3
_VERDICTS: Final = {
    Verdict.ACCEPT: "accepted",
    Verdict.REJECT: "rejected",
    Verdict.INCONCLUSIVE: "inconclusive",
}
_STATES: Final = {
    ReleaseState.RELEASED: "released",
    ReleaseState.PENDING: "waits for your yes or no",
    ReleaseState.REJECTED: "not released",
    ReleaseState.KEPT: "kept, not released",
}


def text(release: Release) -> str:
    """The card, lines joined by newlines."""
    gate = release.gate
    lines = [*_verdict(release), *_about(release)]
    if gate is not None:
        lines += _evidence(gate)
    lines += _origin(release)
    if gate is not None:
        lines += _samples(gate)
    return "\n".join(lines)


def _field(label: str, said: str, most: int = 1) -> list[str]:
    """A labelled text of at most ``most`` lines."""
    room = _WIDTH - _LABEL
    flat = one_line(said, room * most)
    wrapped = textwrap.wrap(flat, room, max_lines=most, placeholder="…", break_on_hyphens=False) or [""]
    return [f"{label if not number else '':<{_LABEL}}{one_line(line, room)}" for number, line in enumerate(wrapped)]


def _verdict(release: Release) -> list[str]:
    if release.kind is ReleaseKind.ROLLBACK:
        return _field("verdict", f"none: it is {release.restores or 'an earlier release'} again", 2)
    if release.recipe == PERSON:
        return _field("verdict", "none: a person made it", 2)
    if release.gate is None:
        unproven = ": a person released it unproven" if release.kind is ReleaseKind.UNPROVEN else ""
        return _field("verdict", f"none, it was not judged{unproven}", 2)
    judged = f"{_VERDICTS[release.gate.verdict]}: {release.gate.reason}"
    if release.kind is ReleaseKind.UNPROVEN and release.state is ReleaseState.RELEASED:
        judged = f"unproven, a person released it; the gate: {judged}"
    return _field("verdict", judged, 4)


def _about(release: Release) -> list[str]:
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(release.created_ns / 1e9))
    state = "serves" if release.head else _STATES[release.state]
    return [*_field("release", f"{release.id}, {state}, {made}"), *_field("what", release.reason, 2)]


def _evidence(gate: GateResult) -> list[str]:
    seen = gate.wins + gate.losses + gate.ties
    if not seen:
        return []
    lines = _field("tasks", f"before {gate.incumbent_passed} of {seen} passed, after {gate.candidate_passed} of {seen}")
    compared = f"{gate.wins} only after, {gate.losses} only before, {gate.ties} the same"
    lines += _field("pairs", f"{compared}; {seen} of {gate.planned} were run")
    evidence = (
        f"{gate.e_value:.3g} for better, {1 / gate.alpha:.3g} needed (alpha {gate.alpha:g}); p {gate.p_value:.3g}"
    )
    lines += _field("evidence", evidence)
    if gate.guard is not None:
        held = f"{gate.guard.held} of {gate.guard.tasks} that passed before still pass"
        lines += _field("guard", f"{held}; {gate.guard.allowed} may be lost")
    return lines


def _origin(release: Release) -> list[str]:
    sources = ((release.instructions, "instruction"), (release.reports, "report"), (release.records, "answer"))
    learned = [count(len(ids), noun) for ids, noun in sources if ids]
    lines = []
    if release.recipe not in (None, PERSON):
        lines += _field("learned", f"from {', '.join(learned) or 'nothing of yours'}, by recipe {release.recipe}")
    parts = []
    if harness := sum(path.startswith("harness/") for path in release.files):
        parts.append(f"harness of {count(harness, 'file')}")
    if ROUTING in release.files:
        parts.append("routing")
    if release.weights is not None:
        parts.append(f"LoRA rank {release.weights.rank}, {release.weights.bytes / 1e6:.1f} MB")
    lines += _field("holds", f"{', '.join(parts) or 'nothing'}; follows {release.parent}")
    return lines


def _samples(gate: GateResult) -> list[str]:
    lines: list[str] = []
    for pair in _chosen(gate.pairs):
        lines.append(f"  {_quoted(pair.prompt)}")
        for when, passed, said in (
            ("before", pair.incumbent, pair.incumbent_answer), ("after", pair.candidate, pair.candidate_answer)
        ):  # fmt: skip
            lines.append(f"    {when:<7}{'pass' if passed else 'fail'}  {one_line(said, _WIDTH - 17) or '(nothing)'}")
    return lines


def _quoted(prompt: str) -> str:
    return f"“{one_line(prompt, _WIDTH - 6)}”"


def _chosen(pairs: tuple[Pair, ...]) -> list[Pair]:
    """A loss first where there is one, then wins, then what stayed the same; each in the order of the gate."""
    losses = [pair for pair in pairs if pair.incumbent and not pair.candidate]
    wins = [pair for pair in pairs if pair.candidate and not pair.incumbent]
    ties = [pair for pair in pairs if pair.candidate == pair.incumbent]
    return [*losses[:1], *wins, *losses[1:], *ties][:_SAMPLES]
