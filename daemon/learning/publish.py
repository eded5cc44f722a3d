"""What becomes of a job's candidate: kept, released, turned down; and the way back.

The order is what makes a release safe: the engine proves the weights, then the chain takes the release by
compare-and-swap, then requests get it. Killed between two of these, the next start finds the chain's head and serves
that; the same job published again is the same release.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from daemon.core.errors import BadWeights, Conflict, EngineError, EngineUnavailable, GateRefused
from daemon.core.paths import open_plain
from daemon.core.releases import (
    BASE_RELEASE,
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


class Heads(Protocol):
    """Which release serves which scenario: `daemon.server.heads`."""

    lock: asyncio.Lock

    def fits(self, lora: LoraFile) -> bool: ...
    def moved(self, release: Release, lora: LoraFile | None) -> None: ...
    def told(self, candidate: Release) -> None: ...


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
    accepted = gate is not None and gate.verdict is Verdict.ACCEPT
    state = ReleaseState.PENDING if accepted else ReleaseState.REJECTED
    complete = await asyncio.to_thread(_with_base, candidate)
    proposed = await asyncio.to_thread(desk.releases.propose, complete, gate, state)
    if proposed.state is ReleaseState.RELEASED:
        return proposed
    desk.heads.told(proposed)
    decided = proposed.state is ReleaseState.REJECTED or proposed.note
    if decided or not accepted or policy is Policy.REVIEW:
        return proposed
    try:
        return await _release(desk, proposed)
    except Conflict as error:
        await _retell(desk, proposed, ReleaseState.PENDING, f"stale: {error.message}")
        raise
    except BadWeights as error:
        await _retell(desk, proposed, ReleaseState.REJECTED, error.message)
        raise
    except EngineError as error:  # what it learned from stays used: a person can still release it
        return await _retell(desk, proposed, ReleaseState.PENDING, f"not released: {error.message}")


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
    return await _release(desk, proposed)


async def reject(desk: Desk, scenario: str, id: str) -> Release:
    """A person's no. Raises Conflict for what is released, NotFound."""
    told = await asyncio.to_thread(desk.releases.reject, scenario, id)
    desk.heads.told(told)
    return told


async def rollback(desk: Desk, scenario: str, to: str | None = None, reason: str = "") -> Release:
    """Release an earlier snapshot again: the one before the head, or ``to``, which may be ``base``.

    Raises NotFound, Conflict, BadWeights (then the head stays).
    """
    async with desk.heads.lock:
        head = await asyncio.to_thread(desk.releases.head, scenario)
        goal = to or (head.parent if head else BASE_RELEASE)
        lora = None
        if goal != BASE_RELEASE:
            target = await asyncio.to_thread(desk.releases.get, scenario, goal)
            lora, goal = await asyncio.to_thread(desk.releases.lora, target), target.id
        if lora is not None and desk.heads.fits(lora):
            with suppress(EngineUnavailable):  # going back must not need a working engine; it checks when it is back
                await desk.embedded.load(lora)
        release = await asyncio.to_thread(desk.releases.rollback, scenario, goal, reason)
        desk.heads.moved(release, lora)
    return release


async def _release(desk: Desk, proposed: Release) -> Release:
    async with desk.heads.lock:
        lora = await asyncio.to_thread(desk.releases.lora, proposed)
        if lora is not None:
            await desk.embedded.load(lora)
        release = await asyncio.to_thread(desk.releases.publish, proposed, proposed.parent)
        if release.head:
            desk.heads.moved(release, lora)
    return release


async def _retell(desk: Desk, proposed: Release, state: ReleaseState, note: str) -> Release:
    told = await asyncio.to_thread(desk.releases.retell, proposed.scenario, proposed.id, state, note)
    desk.heads.told(told)
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
