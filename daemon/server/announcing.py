"""What became of a release, told: to the audit log first, then to those who watch.

Whoever asked gets their answer once the log has it. A daemon that was killed in between writes what is missing when it
starts again: a release of the chain that the log does not know was made, whoever made it.
"""

import asyncio
import logging
from dataclasses import asdict, dataclass
from typing import Any, Final

from daemon.core.errors import ReefError
from daemon.core.releases import Release
from daemon.server.events import Changes
from daemon.server.heads import Heads, row
from daemon.store.db import Store
from daemon.store.releases import Releases
from daemon.store.releases.gc import Swept

_log = logging.getLogger("reef.releases")

_FACTS: Final = ("id", "scenario", "number", "kind", "state", "job", "commit")
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Announcer:
    store: Store
    changes: Changes

    async def tell(self, event: str, told: dict[str, Any], by: str) -> None:
        """Raises StoreError when the log cannot be written: what happened has happened, and watchers know."""
        facts = {name: told[name] for name in _FACTS if name in told}
        try:
            await asyncio.wrap_future(self.store.audit.note(event, facts | {"by": by}))
        finally:
            self.changes.tell(event, told)

    async def swept(self, by: str, swept: Swept) -> None:
        """Raises StoreError."""
        await asyncio.wrap_future(self.store.audit.note("release_gc", asdict(swept) | {"by": by}))

    async def tidy(self, releases: Releases, rejected_days: float) -> None:
        """Housekeeping of the release store, beside serving. Raises nothing."""
        try:
            if swept := await asyncio.to_thread(releases.tidy, rejected_days):
                await self.swept("daemon", swept)
        except (ReefError, OSError) as error:
            _log.warning("the release store was not tidied: %s", error)

    async def catch_up(self, heads: Heads) -> None:
        """Log the releases that a daemon before was killed over. Raises nothing: serving does not wait for a log."""
        try:
            for release in await asyncio.to_thread(self._missing, heads):
                await self.tell("release", row(release), "unknown")
        except ReefError as error:
            _log.warning("the audit log was not brought up to date: %s", error.message)

    def _missing(self, heads: Heads) -> list[Release]:
        """Oldest first."""
        known = self.store.audit.released()
        missing: list[Release] = []
        for head in heads.rows():
            scenario, behind = str(head["scenario"]), int(str(head["number"])) - known.get(str(head["scenario"]), 0)
            if behind > 0:
                rows, _ = heads.releases.list(scenario, min(behind, _MOST))
                missing += [release for release in rows if release.number > known.get(scenario, 0)]
        return sorted(missing, key=lambda release: release.created_ns)
