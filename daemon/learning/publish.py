"""What becomes of a job's candidate: kept, released, turned down; and the way back.

The order is what makes a release safe: the engine proves the weights, then the chain takes the release by
compare-and-swap, then requests get it. Killed between two of these, the next start finds the chain's head and serves
that; the same job published again is the same release.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Protocol

from daemon.core.errors import BadWeights, Conflict, EngineError, EngineUnavailable, GateRefused, RecipeError
from daemon.core.paths import open_plain
from daemon.core.releases import (
    BASE_RELEASE,
    PERSON,
    Candidate,
    GateResult,
    LoraFile,
    Policy,
    Release,
    ReleaseState,
    Verdict,
)
from daemon.engines import gguf
from daemon.engines.base import TokenEngine
from daemon.store.releases import Releases

#: Who decided: the gate, under the policy; or a person.
By = Literal["gate", "person"]
#: What an accepted candidate is kept as.
_STATES: Final = {
    Policy.AUTO: ReleaseState.PENDING,
    Policy.REVIEW: ReleaseState.PENDING,
    Policy.MANUAL: ReleaseState.KEPT,
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a person would have a scenario's agents run, against the release ``parent`` (None: the head).

    ``harness`` maps paths below ``harness/`` to texts, None removes; ``whole``: what it does not name goes. ``config``
    says where it comes from.
    """

    scenario: str
    harness: Mapping[str, str | None] = field(default_factory=dict)
    reason: str = ""
    parent: str | None = None
    whole: bool = False
    config: Mapping[str, str] = field(default_factory=dict)
    #: As `Candidate.routing`.
    routing: Mapping[str, str] | None = None


class Heads(Protocol):
    """Which release serves which scenario: `daemon.server.heads`."""

    lock: asyncio.Lock

    def fits(self, lora: LoraFile) -> bool: ...
    async def moved(self, release: Release, lora: LoraFile | None, by: By, *, pinned: bool = False) -> None: ...
    async def told(self, candidate: Release, by: By) -> None: ...
    async def held(self, release: Release, lora: LoraFile | None) -> None: ...
    async def freed(self, scenario: str, head: Release | None) -> None: ...


class Desk(Protocol):
    """What releasing needs of a running daemon."""

    @property
    def releases(self) -> Releases: ...
    @property
    def heads(self) -> Heads: ...
    @property
    def embedded(self) -> TokenEngine: ...


async def publish_candidate(desk: Desk, candidate: Candidate, gate: GateResult | None, policy: Policy) -> Release:
    """Do with a job's candidate what gate and policy say; the candidate or the release that came of it.

    The same job again gives the same release. Raises Conflict when the head has moved on (the candidate then waits,
    with that as its note), BadWeights (it is turned down), RecipeError when it may not be kept. Without an engine to
    prove its weights it waits for a person: what it learned from is used up, since it may be released yet.
    """
    if candidate.recipe == PERSON:
        raise RecipeError(f"job {candidate.job}: no recipe is a person", hint="reef recipes list")
    accepted = gate is not None and gate.verdict is Verdict.ACCEPT
    state = _STATES[policy] if accepted else ReleaseState.REJECTED
    complete = await asyncio.to_thread(_with_base, candidate)
    proposed = await asyncio.to_thread(desk.releases.propose, complete, gate, state)
    if proposed.state is ReleaseState.RELEASED:
        return proposed
    await desk.heads.told(proposed, "gate")
    decided = proposed.state is not ReleaseState.PENDING or proposed.note
    if decided or not accepted or policy is not Policy.AUTO:
        return proposed
    try:
        return await _release(desk, proposed, "gate")
    except Conflict as error:
        await _retell(desk, proposed, ReleaseState.PENDING, f"stale: {error.message}")
        raise
    except BadWeights as error:
        await _retell(desk, proposed, ReleaseState.REJECTED, error.message)
        raise
    except EngineError as error:  # what it learned from stays used: a person can still release it
        return await _retell(desk, proposed, ReleaseState.PENDING, f"not released: {error.message}")


async def propose(desk: Desk, proposal: Proposal) -> Release:
    """Keep what a person would have a scenario run: it waits for their yes, whatever it holds, and is ``unproven``
    once it has it. The same proposal again is the same candidate, or the release that it became.

    Raises RecipeError that names what is wrong with it, or says that it is nothing new; NotFound for its parent.
    """
    parent = proposal.parent
    if parent is None:
        parent = (await asyncio.to_thread(desk.releases.standing, proposal.scenario)).id
    changes = dict(proposal.harness)
    if proposal.whole and parent != BASE_RELEASE:
        before = await asyncio.to_thread(desk.releases.get, proposal.scenario, parent)
        changes |= {path: None for path in await asyncio.to_thread(desk.releases.files, before) if path not in changes}
    said = json.dumps([proposal.scenario, parent, changes, proposal.routing], sort_keys=True)
    candidate = Candidate(
        scenario=proposal.scenario,
        parent=parent,
        reason=proposal.reason or "changed by a person",
        recipe=PERSON,
        job=f"{PERSON}-{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:32]}",
        harness=changes,
        config=proposal.config,
        routing=proposal.routing,
    )
    proposed = await asyncio.to_thread(desk.releases.propose, candidate, None, ReleaseState.PENDING)
    if proposed.state is not ReleaseState.RELEASED:
        await desk.heads.told(proposed, "person")
    return proposed


async def approve(desk: Desk, scenario: str, id: str, *, force: bool = False) -> Release:
    """A person's yes: release a candidate; one that is released already stays as it is.

    Raises GateRefused for one that the gate rejected, unless forced; Conflict, BadWeights, NotFound.
    """
    proposed = await asyncio.to_thread(desk.releases.get, scenario, id)
    if proposed.state is ReleaseState.RELEASED:
        return proposed
    if proposed.gate is not None and proposed.gate.verdict is Verdict.REJECT and not force:
        raise GateRefused(
            f"the gate rejected {proposed.id}: {proposed.gate.reason}",
            hint=f"reef releases show {proposed.id}; to release it all the same: "
            f"reef releases approve {proposed.id} --force",
        )
    return await _release(desk, proposed, "person")


async def reject(desk: Desk, scenario: str, id: str) -> Release:
    """A person's no. Raises Conflict for what is released, NotFound."""
    told = await asyncio.to_thread(desk.releases.reject, scenario, id)
    await desk.heads.told(told, "person")
    return told


async def rollback(desk: Desk, scenario: str, to: str | None = None, reason: str = "") -> Release:
    """Release an earlier snapshot again: the one before what is served, or ``to``, which may be ``base``. Clients that
    were held at a release are held at this one from now on.

    Raises NotFound, Conflict, BadWeights (then the head stays).
    """
    async with desk.heads.lock:
        return await _roll_back(desk, scenario, to, reason, pin=False)


async def pin(desk: Desk, scenario: str, id: str) -> Release:
    """Hold a scenario's clients at a release: later ones are released, but not served until `unpin`. One that is not
    the head any more is released again first, since clients never go back to a lower number.

    Raises NotFound, Conflict, BadWeights (then nothing has changed).
    """
    async with desk.heads.lock:
        wanted = await asyncio.to_thread(desk.releases.get, scenario, id)
        serving = await asyncio.to_thread(desk.releases.serving, scenario)
        near = wanted.head or (serving is not None and wanted.id == serving.id)
        if wanted.state is ReleaseState.RELEASED and not near:
            return await _roll_back(desk, scenario, wanted.id, f"held at {wanted.id}", pin=True)
        lora = await asyncio.to_thread(desk.releases.lora, wanted)
        await _load_if_possible(desk, lora)
        await asyncio.to_thread(desk.releases.pin, wanted)
        await desk.heads.held(wanted, lora)
    return wanted


async def unpin(desk: Desk, scenario: str) -> Release | None:
    """Serve the head again; None: the base. Raises Conflict where nothing is held, BadWeights (then it stays held)."""
    async with desk.heads.lock:
        head = await asyncio.to_thread(desk.releases.head, scenario)
        lora = await asyncio.to_thread(desk.releases.lora, head) if head else None
        await _load_if_possible(desk, lora)
        if not await asyncio.to_thread(desk.releases.unpin, scenario):
            raise Conflict(f"{scenario!r} is not held at a release", hint="reef releases pin RELEASE")
        await desk.heads.freed(scenario, head)
    return head


async def _roll_back(desk: Desk, scenario: str, to: str | None, reason: str, *, pin: bool) -> Release:
    serving = await asyncio.to_thread(desk.releases.serving, scenario)
    goal = to or (serving.parent if serving else BASE_RELEASE)
    lora = None
    if goal != BASE_RELEASE:
        target = await asyncio.to_thread(desk.releases.get, scenario, goal)
        lora, goal = await asyncio.to_thread(desk.releases.lora, target), target.id
    await _load_if_possible(desk, lora)
    release = await asyncio.to_thread(desk.releases.rollback, scenario, goal, reason, pin=pin)
    pinned = await asyncio.to_thread(desk.releases.pinned, scenario)
    await desk.heads.moved(release, lora, "person", pinned=pinned is not None)
    return release


async def _load_if_possible(desk: Desk, lora: LoraFile | None) -> None:
    """Going back must not need a working engine; it checks when it is back. Raises BadWeights."""
    if lora is not None and desk.heads.fits(lora):
        with suppress(EngineUnavailable):
            await desk.embedded.load(lora)


async def _release(desk: Desk, proposed: Release, by: By) -> Release:
    async with desk.heads.lock:
        lora = await asyncio.to_thread(desk.releases.lora, proposed)
        if lora is not None:
            await desk.embedded.load(lora)
        release = await asyncio.to_thread(desk.releases.publish, proposed, proposed.parent, by_person=by == "person")
        if release.head:
            await desk.heads.moved(release, lora, by)
    return release


async def _retell(desk: Desk, proposed: Release, state: ReleaseState, note: str) -> Release:
    told = await asyncio.to_thread(desk.releases.retell, proposed.scenario, proposed.id, state, note)
    await desk.heads.told(told, "gate")
    return told


def _with_base(candidate: Candidate) -> Candidate:
    """With the model that its weights belong to, as their file says; who trained them need not repeat it."""
    if candidate.lora is None or candidate.base is not None:
        return candidate
    try:
        open_plain(Path(candidate.lora)).close()
        base = gguf.contents(Path(candidate.lora)).metadata.get("reef.base_sha256")
    except (OSError, ValueError) as error:
        raise BadWeights(f"the weights of {candidate.job} cannot be read: {error}", hint="reef jobs list") from error
    return replace(candidate, base=base if isinstance(base, str) else None)
