"""When a recipe runs by itself: once its scenario has as much news as its ``batch_size`` since its last job.

It never loops: a job that failed or found nothing is not repeated until something new has come.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from daemon.core.errors import ReefError
from daemon.core.learning import JobRow
from daemon.learning.catalogue import Catalogue
from daemon.learning.jobs import Jobs
from daemon.learning.stream import Stream
from daemon.store.learning import Learning

_log = logging.getLogger("reef.jobs")

#: Experience comes in bursts; one look a second is enough.
_PAUSE_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 3600.0
#: Takes an instruction where the configured recipe does not: a rule in the harness needs no model.
_HEEDS: Final = "playbook"


class Scheduler:
    """``reef`` is the configuration's section; ``by_itself`` says which scenarios' news start it. ``problem``: why its
    recipe cannot run, for `reef status`.
    """

    def __init__(
        self, store: Learning, jobs: Jobs, stream: Stream, *,
        catalogue: Catalogue, reef: Mapping[str, Any], by_itself: Callable[[str], bool] = lambda _: True,
    ) -> None:  # fmt: skip
        self._store = store
        self._jobs = jobs
        self._catalogue = catalogue
        self._stream = stream
        self._by_itself = by_itself
        self._name = str(reef["recipe"]) if reef.get("recipe") else None
        self._settings = {key: value for key, value in reef.items() if key != "recipe"}
        self._recipe: dict[str, Any] | None = None
        self._loaded = asyncio.Event()
        #: Held from a look at which jobs are open to the start of one, and by who brings an instruction: one run each.
        self.turn = asyncio.Lock()
        self.problem = f"recipe {self._name!r} is being looked at" if self._name else None

    async def settings(self, recipe: str) -> dict[str, Any]:
        """What the configuration sets for a recipe: its own section's keys, if it is the configured one."""
        await self._loaded.wait()
        return dict(self._settings) if self._recipe is not None and recipe == self._recipe["name"] else {}

    async def heeding(self) -> str:
        """The recipe that takes an instruction which names none."""
        await self._loaded.wait()
        takes = self._recipe is not None and "instruction" in self._recipe["signals"]
        return str(self._recipe["name"]) if self._recipe is not None and takes else _HEEDS

    async def run(self, changed: Callable[[int, float], Awaitable[int]]) -> None:
        """``changed(version, seconds)`` waits for something newer than a version. Until it is cancelled."""
        try:
            await self._load()
        finally:
            self._loaded.set()
        for scenario, recipe in await asyncio.to_thread(self._store.unheeded):
            async with self.turn:
                await self.start(scenario, recipe)
        version = -1
        while self._recipe is not None:
            version = await changed(version, _PATIENCE_SECONDS)
            await self._look(self._recipe)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def start(self, scenario: str, recipe: str) -> JobRow | None:
        """Run a recipe now, unless a run of it waits already: that one will do. ``turn`` is held."""
        for row in await asyncio.to_thread(self._store.open_jobs):
            if row.scenario == scenario and row.recipe == recipe and not self._jobs.is_running(row.id):
                return row
        try:
            return await self._jobs.submit(scenario, recipe, await self.settings(recipe))
        except ReefError as error:
            _log.warning("recipe %s could not be started for %s: %s", recipe, scenario, error.message)
            return None

    async def _load(self) -> None:
        if self._name is None:
            return
        try:
            self._recipe = await self._catalogue.describe(self._name, self._settings)
            self.problem = None
        except ReefError as error:
            self.problem = f"{error.message}{f' ({error.hint})' if error.hint else ''}; recording goes on"
            _log.warning("%s", self.problem)

    async def _look(self, recipe: Mapping[str, Any]) -> None:
        name, enough = recipe["name"], recipe["config"]["batch_size"]
        try:
            for scenario in await asyncio.to_thread(self._store.scenarios):
                if not self._by_itself(scenario):
                    continue
                async with self.turn:
                    rows = await asyncio.to_thread(self._store.open_jobs)
                    if any(row.scenario == scenario and row.recipe == name for row in rows):
                        continue
                    news = await asyncio.to_thread(self._stream.news, scenario, name, recipe["signals"], enough)
                    if news >= enough:
                        await self._jobs.submit(scenario, name, await self.settings(name))
        except ReefError as error:  # a full disk: tried again with the next change
            _log.warning("experience cannot be looked at: %s", error.message)
