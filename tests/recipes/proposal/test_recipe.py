"""The proposal recipe adds nothing of its own; the rest is in tests/daemon/server/test_proposals.py, end to end."""

from typing import Any, cast

from daemon.core.learning import Batch
from recipes.base import Context, Stream
from recipes.proposal.recipe import ProposalConfig, ProposalRecipe
from recipes.registry import configured, find, load


def test_its_settings_are_the_proposal() -> None:
    given: dict[str, Any] = {"files": {"rules.md": "Be brief.\n", "prompts/x.md": None}, "reason": "why"}
    config, _ = configured(load(find("proposal")), given)
    recipe = ProposalRecipe(config)
    assert recipe.select(cast(Stream, None)) == Batch()
    proposal = recipe.grow(Batch(), cast(Context, None))
    assert proposal is not None
    assert (proposal.harness, proposal.reason, proposal.lora) == (given["files"], "why", None)


def test_nothing_is_no_proposal() -> None:
    class Said:
        def say(self, text: str) -> None:
            assert text == "nothing is proposed"

    assert ProposalRecipe(ProposalConfig()).grow(Batch(), cast(Context, Said())) is None
