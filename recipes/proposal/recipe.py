"""The proposal recipe: what an agent would have in its harness, as it wrote it, for the gate to judge (B191).

It thinks of nothing itself. An agent's words go the way of every recipe's: text alone, compared on the scenario's tasks
by a process that the agent has no part in, and released by the scenario's policy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from daemon.core.learning import Batch
from recipes.base import Acquisition, Context, Proposal, Recipe, Signal, Stream, Target


@dataclass(frozen=True, slots=True)
class ProposalConfig:
    """``files``: path below ``harness/`` → text, None removes."""

    files: Mapping[str, str | None] = field(default_factory=dict)
    reason: str = ""
    #: Where the agent was when it proposed this; for the person who reads the release.
    session: str | None = None


class ProposalRecipe(Recipe):
    name: ClassVar[str] = "proposal"
    summary: ClassVar[str] = "Judges what an agent proposed for its harness (POST /reef/harness/proposals)."
    signals: ClassVar[tuple[Signal, ...]] = ()
    acquisition: ClassVar[Acquisition] = Acquisition.PROACTIVE
    target: ClassVar[Target] = Target.HARNESS
    Config: ClassVar[type[ProposalConfig]] = ProposalConfig

    config: ProposalConfig

    def select(self, stream: Stream) -> Batch | None:
        """Nothing to claim: no experience is learned from."""
        return Batch()

    def grow(self, batch: Batch, context: Context) -> Proposal | None:
        if not self.config.files:
            context.say("nothing is proposed")
            return None
        return Proposal(reason=self.config.reason or "proposed by an agent", harness=self.config.files)
