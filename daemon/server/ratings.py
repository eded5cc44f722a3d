"""What a person says to Reef from inside an agent, kept as a report. Durable before it is answered.

The answer is always a sentence for that person: what was recorded, or why nothing was and what to do.
"""

import asyncio
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from daemon.core.errors import ReefError
from daemon.core.ids import new_id
from daemon.core.rows import NewReport, RecordRow
from daemon.server.actions import parse_report
from daemon.server.events import Changes
from daemon.server.recorder import Recorder
from daemon.server.relaying import worded
from daemon.store.db import Store
from daemon.store.inband import Said

_SCORES: Final = {"good": 1.0, "bad": 0.0, "note": None}


@dataclass(frozen=True, slots=True)
class Ratings:
    """Keeps them, on one daemon."""

    store: Store
    recorder: Recorder
    changes: Changes

    async def keep(self, said: Said, about: RecordRow | None, once: bytes) -> str:
        """Store it on that record; what to answer. ``once``: the same again is the same report."""
        if about is None:
            return "not recorded: this conversation has no recorded answer yet (in a shell: reef good, bad or note)"
        if said.word == "note" and not said.text:
            return "not recorded: a note has words, as in: note use uv, not pip"
        content = {"score": _SCORES[said.word], "feedback": said.text or None, "references": [about.receipt]}
        try:
            new = parse_report(content, about.scenario)
            await self._stored(replace(new, id=_id(about, once)))
        except ReefError as error:
            return unkept(error)
        why = self.recorder.passed_since(about.started_ns)
        later = f" (a later answer was not recorded: {why})" if why else ""
        return f"recorded {said.word} on {about.receipt}{later}"

    async def _stored(self, new: NewReport) -> None:
        """What an agent sends again is the same report, unless that was taken back."""
        row, created = await asyncio.wrap_future(self.store.report(new))
        if not created and row.undone_ns is not None:
            row, created = await asyncio.wrap_future(self.store.report(replace(new, id=new_id("rep"))))
        if created:
            self.changes.reported(row)


def unkept(error: ReefError) -> str:
    return f"not recorded: {worded(error)}"


def _id(about: RecordRow, once: bytes) -> str:
    return f"rep_{blake2b(about.receipt.encode() + once, digest_size=13).hexdigest()}"
