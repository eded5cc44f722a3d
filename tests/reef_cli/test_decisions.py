"""What became of a release, in words."""

from reef_cli import decisions
from tests.fakes.dashboard import release


def test_inconclusive_is_not_rejected() -> None:
    gate = {"verdict": "inconclusive", "wins": 2, "losses": 1}
    unsure = release(1, state="rejected", gate=gate)
    assert (decisions.state(unsure), decisions.verdict(unsure)) == ("inconclusive", "inconclusive 2:1")
    assert decisions.state(release(1, state="released", gate=gate)) == "released"  # somebody said yes
    assert decisions.state(release(1, state="rejected")) == "rejected"
    assert decisions.verdict(release(1, gate=None)) == "-"


def test_who_put_a_line_there() -> None:
    assert (decisions.short(release(3)), decisions.by(release(3))) == ("r3", "recipe sft, job job_3")
    own = release(4, state="pending", number=0, recipe="person")
    assert (decisions.short(own), decisions.by(own)) == ("(new)", "a person's own")
