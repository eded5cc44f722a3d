"""What a running daemon is made of, put together once at the start and taken apart at the end."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from daemon.core.config import Config
from daemon.core.paths import Home
from daemon.core.records import Dialect, Message
from daemon.core.redact import Redactor
from daemon.core.releases import Candidate, GateResult, Policy, Release
from daemon.engines.base import EngineStatus
from daemon.engines.llama_cpp import LlamaCpp
from daemon.engines.models import Models
from daemon.engines.remote import Remote
from daemon.learning.jobs import Incumbent
from daemon.learning.publish import publish_candidate
from daemon.server import following, retention
from daemon.server.announcing import Announcer
from daemon.server.auth import Tokens, secret
from daemon.server.checks import Checks
from daemon.server.events import Changes
from daemon.server.fetching import Fetching
from daemon.server.heads import Heads
from daemon.server.lately import Lately
from daemon.server.learning import LearningSide, Seams, learning
from daemon.server.live import Live
from daemon.server.metrics import Metrics
from daemon.server.privacy import Privacy
from daemon.server.recorder import Recorder
from daemon.server.routing import DEFAULT_MODEL, Router
from daemon.server.scenarios import Scenarios
from daemon.server.telemetry import Telemetry
from daemon.server.working import Working
from daemon.store.db import Store
from daemon.store.releases import Releases
from daemon.store.scenarios import Choices, Chosen
from daemon.wire.base import dialect

#: Where the model, which may have learned shorter ones, has not been loaded yet.
_EMBEDDED_CONTEXT: Final = 8192


@dataclass(slots=True)
class Runtime:
    home: Home
    config: Config
    config_path: Path | None
    tokens: Tokens
    port: int
    store: Store
    redactor: Redactor
    recorder: Recorder
    privacy: Privacy
    metrics: Metrics
    telemetry: Telemetry | None
    models: Models
    embedded: LlamaCpp
    router: Router
    changes: Changes
    releases: Releases
    heads: Heads
    learning: LearningSide
    live: Live
    lately: Lately
    choices: Choices
    working: Working
    checks: Checks = field(default_factory=Checks)
    stop: Callable[[float | None], None] = lambda _seconds: None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    started_ns: int = field(default_factory=time.time_ns)
    #: The same by a clock that nobody sets.
    began: float = field(default_factory=time.monotonic)
    fetching: Fetching = field(init=False)

    def __post_init__(self) -> None:
        self.fetching = Fetching(self.changes)

    def engines(self) -> list[EngineStatus]:
        """How each engine is, and did lately."""
        return [self.lately.of(engine.status()) for engine in self.router.engines()]

    def context(self) -> int | None:
        """Tokens in the longest conversation that the default model takes; None: a provider's, which nobody here
        knows."""
        if self.router.choose(DEFAULT_MODEL, Dialect.CHAT).engine is not self.embedded:
            return None
        return self.embedded.status().context or self.config.embedded.context or _EMBEDDED_CONTEXT


@asynccontextmanager
async def running(
    home: Home, config: Config, *, config_path: Path | None, tokens: Tokens, port: int
) -> AsyncIterator[Runtime]:
    """Open the store and the engines; close them, recorded work first, on the way out. Raises StoreError,
    ConfigError.
    """
    redactor = Redactor(secret(home.redaction_key, lambda: secrets.token_bytes(32)))
    choices = await asyncio.to_thread(Choices.load, home.scenarios)
    store = await asyncio.to_thread(_opened, home, config, redactor)
    changes = Changes(asyncio.get_running_loop())
    store.on_commit = changes.committed
    models = Models(home)
    releases = await asyncio.to_thread(Releases.open, home)
    announcer = Announcer(store, changes)
    heads = Heads(releases, models.active, announcer.tell)
    await asyncio.to_thread(heads.load)
    await announcer.catch_up(heads)
    embedded = LlamaCpp(
        model=models.active, config=config.embedded, log=home.logs / "engine.log", on_change=changes.raise_one
    )
    router = Router(config, embedded, {name: Remote(name, one) for name, one in config.engines.items()}, models)
    metrics, lately = Metrics(), Lately()
    told = (metrics.ended, lately.ended, Scenarios(await asyncio.to_thread(store.learning.scenarios)).ended)
    privacy = Privacy(home, config.privacy.deny)
    desk = Desk(releases, heads, embedded)
    seams = _seams(store, models, desk, Chosen(config.scenarios, choices))
    working = Working(home, desk, lambda told: changes.tell("working", told))
    try:
        async with (
            _telemetry(config, store, redactor) as telemetry,
            _beside(retention.run(store, config.privacy.retention_days) if config.privacy.retention_days else None),
            _beside(announcer.tidy(releases, config.releases.rejected_days)),
            _beside(following.run(home, working, changes, heads)),
            learning(home, config, store=store, changes=changes, config_path=config_path, seams=seams) as side,
        ):
            runtime = Runtime(
                home=home, config=config, config_path=config_path, tokens=tokens, port=port, store=store,
                recorder=Recorder(store, privacy, [*told, *([telemetry.ended] if telemetry else [])]),
                redactor=redactor, privacy=privacy, metrics=metrics, telemetry=telemetry, models=models,
                embedded=embedded, router=router,
                changes=changes, releases=releases, heads=heads, learning=side, live=Live(redactor, changes.raise_one),
                lately=lately, choices=choices, working=working,
            )  # fmt: skip
            try:
                yield runtime
            finally:
                runtime.stopping.set()
    finally:
        for engine in router.engines():
            await engine.close()
        await asyncio.to_thread(store.close)


@asynccontextmanager
async def _telemetry(config: Config, store: Store, redactor: Redactor) -> AsyncIterator[Telemetry | None]:
    """Spans' way out, where one is configured."""
    if not config.telemetry.endpoint:
        yield None
        return
    telemetry = Telemetry(config.telemetry, store, redactor, {name: one.api for name, one in config.engines.items()})
    try:
        async with _beside(telemetry.run()):
            yield telemetry
    finally:
        await telemetry.close()


@asynccontextmanager
async def _beside(work: Coroutine[object, object, None] | None) -> AsyncIterator[None]:
    """``work`` goes on meanwhile, and is cancelled at the end."""
    task = None if work is None else asyncio.create_task(work)
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _opened(home: Home, config: Config, redactor: Redactor) -> Store:
    def read(name: Dialect, raw: bytes) -> Message:
        return dialect(name).message(raw)

    return Store.open(home.database, config.store.durability, redactor.redact, read=read)


@dataclass(frozen=True, slots=True)
class Desk:
    """`daemon.learning.publish.Desk` for jobs, which outlive no runtime but begin before it is whole."""

    releases: Releases
    heads: Heads
    embedded: LlamaCpp


def _seams(store: Store, models: Models, desk: Desk, scenarios: Chosen) -> Seams:
    """What learning sees of the rest."""

    def model() -> str | None:
        active = models.active()
        return None if active is None else active.sha256

    def incumbent(scenario: str) -> Incumbent:
        head = desk.releases.head(scenario)
        return Incumbent() if head is None else Incumbent(head, desk.releases.files(head))

    async def publish(candidate: Candidate, gate: GateResult, policy: Policy) -> Release:
        return await publish_candidate(desk, candidate, gate, policy)

    return Seams(
        incumbent=incumbent,
        head=lambda scenario: desk.heads.tip(scenario).release_id,
        head_lora=lambda scenario: desk.heads.lora(desk.heads.tip(scenario)),
        publish=publish,
        model=model,
        held_out=lambda scenario: [task.prompt for task in store.tasks(scenario)],
        scenarios=scenarios,
        by_itself=scenarios.by_itself,
    )
