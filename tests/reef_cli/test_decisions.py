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
