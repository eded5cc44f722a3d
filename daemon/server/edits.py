"""A working copy's edits as candidates: proposed, replaced by what was saved later, withdrawn when there is none left.

At most one waits for a working copy. A daemon that was killed between proposing and noting it leaves one more, which
nobody knows: `withdraw_others` finds it by its origin.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from daemon.core.errors import NotFound
from daemon.core.releases import Release, ReleaseState
from daemon.learning import publish
from daemon.learning.publish import Desk, Proposal

#: In the configuration of a candidate that came from a working copy.
ORIGIN: Final = {"origin": "working copy"}
#: Files that a reason names.
_NAMED: Final = 3


async def propose(desk: Desk, scenario: str, base: str, edits: Mapping[str, str | None]) -> Release:
    """The candidate of these edits; the same ones are the same candidate, which waits again if it was withdrawn."""
    names = sorted(edits)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    reason = f"edited by hand: {', '.join(names[:_NAMED])}{more}"
    release = await publish.propose(desk, Proposal(scenario, edits, reason, parent=base, config=ORIGIN))
    if release.state is ReleaseState.REJECTED:
        release = await asyncio.to_thread(desk.releases.retell, scenario, release.id, ReleaseState.PENDING, "")
        await desk.heads.told(release, "person")
    return release


async def known(desk: Desk, scenario: str, id: str | None) -> Release | None:
    """What a candidate is by now."""
    if id is None:
        return None
    try:
        return await asyncio.to_thread(desk.releases.get, scenario, id)
    except NotFound:
        return None


async def withdraw(desk: Desk, proposed: Release, note: str) -> None:
    """Unless somebody has decided about it."""
    if proposed.state is ReleaseState.PENDING:
        told = await asyncio.to_thread(desk.releases.reject, proposed.scenario, proposed.id, note)
        await desk.heads.told(told, "person")


async def withdraw_others(desk: Desk, scenario: str, keep: str | None) -> None:
    """Everything that waits from the working copy but this one."""
    for one in await asyncio.to_thread(desk.releases.waiting):
        if one.scenario == scenario and one.id != keep and one.config.get("origin") == ORIGIN["origin"]:
            await withdraw(desk, one, f"withdrawn: edited further{f', see {keep}' if keep else ''}")
