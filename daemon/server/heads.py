"""Which release serves each scenario: the answer to every request's first question, so it is kept in memory.

A head moves here only after the engine has proved the weights and the chain has the release; a request keeps what it
was given when it arrived. What cannot be trusted never serves, and never stops the daemon: the newest release that can
be does, or the model alone, and `Heads.notes` says so.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from daemon.core.errors import BadWeights, ReefError, Untrusted
from daemon.core.releases import BASE_RELEASE, LoraFile, Release, ReleaseState
from daemon.engines.base import ModelFile
from daemon.store.releases import Releases

_log = logging.getLogger("reef.releases")


@dataclass(frozen=True, slots=True)
class Served:
    """What answers a scenario's requests; ``lora`` None: the model alone. ``routing``: model asked for → model."""

    release_id: str = BASE_RELEASE
    number: int = 0
    lora: LoraFile | None = None
    routing: Mapping[str, str] = field(default_factory=dict)


BASE: Final = Served()


def row(release: Release) -> dict[str, Any]:
    """A release in a list or an event: whole but for the gate's pairs."""
    short = replace(release, gate=replace(release.gate, pairs=())) if release.gate else release
    told = asdict(short)
    if told["gate"]:
        del told["gate"]["pairs"]
    return told


@dataclass(slots=True)
class Heads:
    """All scenarios' heads. Everything but `load` belongs to the event loop."""

    releases: Releases
    model: Callable[[], ModelFile | None]
    #: Told what became of a release or candidate (``release``, ``release_pin``, ``release_unpin``), its `row` and who
    #: decided, ``gate`` or ``person``; once it returns, the audit log has it.
    on_change: Callable[[str, dict[str, Any], str], Awaitable[None]]
    #: Held while a head is on its way to another release.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: What each chain's head would serve; a pin holds requests elsewhere.
    _tips: dict[str, Served] = field(default_factory=dict)
    _held: dict[str, Served] = field(default_factory=dict)
    _heads: dict[str, Release] = field(default_factory=dict)
    _waiting: dict[str, Release] = field(default_factory=dict)
    _trouble: dict[str, str] = field(default_factory=dict)

    def load(self) -> None:
        """Read all heads from the store and prove them. Blocking; raises nothing."""
        try:
            scenarios = self.releases.scenarios()
            self._waiting = {release.id: release for release in self.releases.waiting()}
        except ReefError as error:
            self._tell("", f"releases cannot be read: {error.message}; the model answers alone")
            return
        for scenario in scenarios:
            try:
                self._load(scenario)
            except ReefError as error:
                self._tell(scenario, f"{scenario}: no release can be read: {error.message}")

    def _load(self, scenario: str) -> None:
        release, trouble = self.releases.standing(scenario)
        if trouble:
            self._tell(scenario, f"{trouble}; {release.id if release else BASE_RELEASE} serves")
        while release is not None:
            try:
                lora = self.releases.lora(release)
            except BadWeights as error:
                before = self.releases.before(release)
                self._tell(scenario, f"{scenario}: {release.id} is not used: {error.message}")
                release = before
                continue
            self._heads[scenario] = release
            self._tips[scenario] = self._serves(release, lora)
            break
        try:
            if pinned := self.releases.pinned(scenario):
                self._held[scenario] = self._serves(pinned, self.releases.lora(pinned))
        except (BadWeights, Untrusted) as error:
            self._tell(scenario, f"{scenario}: its pin is not used: {error.message}; the head serves")

    def _serves(self, release: Release, lora: LoraFile | None) -> Served:
        return Served(release.id, release.number, lora, self.releases.routing(release))

    def served(self, scenario: str) -> Served:
        """What a request that arrives now gets, for as long as it takes."""
        return self._held.get(scenario) or self.tip(scenario)

    def tip(self, scenario: str) -> Served:
        """What the head of its chain would serve: what recipes start from, and the gate compares with."""
        return self._tips.get(scenario, BASE)

    def held_at(self, scenario: str) -> str | None:
        """The release that a pin holds the scenario's clients at."""
        held = self._held.get(scenario)
        return held.release_id if held else None

    def head(self, scenario: str) -> Release | None:
        """The release at the end of its chain; None: the base."""
        return self._heads.get(scenario)

    def lora(self, served: Served) -> LoraFile | None:
        """The weights to answer with; None, too, where they belong to another model than the one in use."""
        return served.lora if served.lora is not None and self.fits(served.lora) else None

    def fits(self, lora: LoraFile) -> bool:
        model = self.model()
        return model is not None and model.sha256 == lora.base

    async def moved(self, release: Release, lora: LoraFile | None, by: str, *, pinned: bool = False) -> None:
        """The chain has a new head, and the engine its weights; ``pinned``: its clients are held there from now on."""
        scenario = release.scenario
        serves = await asyncio.to_thread(self._serves, release, lora)
        self._heads[scenario], self._tips[scenario] = release, serves
        self._trouble.pop(scenario, None)
        self._waiting = {id: row for id, row in self._waiting.items() if row.job != release.job}
        if pinned:
            self._held[scenario] = serves
        _log.info("%s: %s serves: %s", scenario, self.served(scenario).release_id, release.reason)
        await self.on_change("release", row(release), by)

    def forget(self, scenario: str) -> None:
        """The scenario is no more: the model answers alone."""
        for kept in (self._heads, self._tips, self._held, self._trouble):
            kept.pop(scenario, None)
        self._waiting = {id: row for id, row in self._waiting.items() if row.scenario != scenario}

    async def told(self, candidate: Release, by: str) -> None:
        """A candidate was kept, or has another state."""
        if candidate.state is ReleaseState.PENDING:
            self._waiting[candidate.id] = candidate
        else:
            self._waiting.pop(candidate.id, None)
        await self.on_change("release", row(candidate), by)

    async def held(self, release: Release, lora: LoraFile | None) -> None:
        """Clients are held at a release."""
        self._held[release.scenario] = await asyncio.to_thread(self._serves, release, lora)
        await self.on_change("release_pin", row(release), "person")

    async def freed(self, scenario: str, head: Release | None) -> None:
        """Clients follow the head again; None: it is the base."""
        self._held.pop(scenario, None)
        told = row(head) if head else {"id": BASE_RELEASE, "scenario": scenario}
        await self.on_change("release_unpin", told, "person")

    def unfit(self, scenario: str, served: Served, error: BadWeights) -> None:
        """The engine refused the head's weights when a request came: the model answers alone from now on."""
        for known in (self._tips, self._held):
            if known.get(scenario) == served:
                known[scenario] = replace(served, lora=None)
        self._tell(scenario, f"{scenario}: the weights of {served.release_id} are not used: {error.message}")

    def rows(self) -> list[dict[str, object]]:
        """What `reef status` shows of each head, the newest first."""
        return [
            {
                "scenario": scenario,
                "release_id": head.id,
                "number": head.number,
                "pinned": self.held_at(scenario),
                "kind": head.kind,
                "created_ns": head.created_ns,
                "verdict": head.gate.verdict if head.gate else None,
                "reason": head.reason,
            }
            for scenario, head in sorted(self._heads.items(), key=lambda item: -item[1].created_ns)
        ]

    def waiting(self) -> list[str]:
        """Ids of the candidates that wait for a person, oldest first."""
        return [row.id for row in sorted(self._waiting.values(), key=lambda row: row.created_ns)]

    def waiting_in(self) -> list[str]:
        """The scenario of each of `waiting`, in the same order."""
        return [row.scenario for row in sorted(self._waiting.values(), key=lambda row: row.created_ns)]

    def notes(self) -> list[str]:
        """What is not as it should be."""
        model = self.model()
        foreign = [
            f"{scenario}: the weights of {served.release_id} belong to another model than {model.name}, "
            "which answers alone"
            for scenario in self._tips
            for served in (self.served(scenario),)
            if model is not None and served.lora is not None and not self.fits(served.lora)
        ]
        return [*self._trouble.values(), *foreign]

    def _tell(self, scenario: str, trouble: str) -> None:
        _log.warning("%s", trouble)
        self._trouble[scenario] = trouble
