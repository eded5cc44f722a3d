"""Scenarios made, changed and removed by name: ``POST /reef/scenarios``, ``…/{s}/update``, ``DELETE …/{s}``.

The published protocol's names. Removing one puts its chain aside in Git, where it stays, and keeps every record: what
was recorded is forgotten by a purge alone. Never takes an address or a key for a model: who could send one could send
a person's prompts anywhere.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from adapters import active, agent, session
from adapters.session import Place
from daemon.core.errors import Conflict, ReefError, UsageError
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, Policy
from daemon.server import published
from daemon.server.control import answer, body, read, runtime
from daemon.server.identity import DEFAULT_SCENARIO, scenario_name
from daemon.server.runtime import Runtime
from daemon.store.scenarios import Training

_CREATE: Final = ("name", "release_id", "policy", "training_mode")
_UPDATE: Final = ("policy", "training_mode")


async def create(request: Request) -> Response:
    """201 for a new one, 200 for one that is there. Its records and releases begin with the first request."""
    daemon, data = runtime(request), await body(request)
    name = data.get("name")
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"name {name!r:.80} is no scenario's name", hint='{"name": "work"}')
    scenario, changes = scenario_name(name.strip()), _changes(data, _CREATE)
    if data.get("release_id") not in (None, BASE_RELEASE):
        raise Conflict(
            f"a scenario starts from {BASE_RELEASE!r}, not from {data['release_id']!r:.80}",
            hint=f"reef harness propose takes a tree into {scenario}",
        )
    there = scenario in await read(published.names, daemon)
    await read(daemon.choices.made, scenario)
    return await _told(daemon, scenario, changes, 200 if there else 201)


async def update(request: Request) -> Response:
    daemon, data = runtime(request), await body(request)
    scenario = await published.known(request)
    changes = _changes(data, _UPDATE)
    if not changes:
        raise UsageError("nothing to change is named", hint=f"one of {', '.join(_UPDATE)}")
    return await _told(daemon, scenario, changes, 200)


async def remove(request: Request) -> Response:
    """Raises Conflict while something still goes by it."""
    daemon = runtime(request)
    scenario = await published.known(request)
    if scenario == DEFAULT_SCENARIO:
        raise Conflict(
            f"{scenario!r} is what requests belong to that name none", hint="reef releases rollback base empties it"
        )
    if scenario in daemon.config.scenarios:
        raise Conflict(
            f"{scenario!r} is in the configuration", hint=f"take it out of scenarios: in {daemon.config_path} first"
        )
    if jobs := [row.id for row in await read(daemon.store.learning.open_jobs) if row.scenario == scenario]:
        raise Conflict(f"job {jobs[0]} runs for {scenario!r}", hint=f"reef jobs cancel {jobs[0]}")
    if agents := await read(_wrapped, daemon.home, scenario):
        raise Conflict(
            f"{await read(_command, daemon.home, agents[0])} runs {scenario!r}",
            hint=f"reef harness install --adapter {agents[0]} --scenario OTHER",
        )
    await daemon.working.forget(scenario)
    async with daemon.heads.lock:
        place = await read(daemon.releases.archive, scenario)
        daemon.heads.forget(scenario)
    await read(_forgotten, daemon.home, scenario)
    await read(daemon.choices.removed, scenario)
    facts = {"scenario": scenario, "archived": place}
    await asyncio.wrap_future(daemon.store.audit.note("scenario_removed", facts))
    daemon.changes.tell("scenario", facts)
    return answer({**facts, "removed": True})


def _wrapped(home: Home, scenario: str) -> list[str]:
    """Installed agents that run it."""
    found = []
    for chosen in home.agents.glob("*/install.json"):
        with suppress(OSError, ValueError, AttributeError):
            if json.loads(chosen.read_bytes()).get("scenario") == scenario:
                found.append(chosen.parent.name)
    return sorted(found)


def _command(home: Home, name: str) -> str:
    """What a person calls an agent by; its name where nothing describes it any more."""
    try:
        return agent.load(home, name).command
    except ReefError:
        return name


def _forgotten(home: Home, scenario: str) -> None:
    """Agents that ran it (``REEF_SCENARIO``) take it for a new one: its numbers begin again."""
    for kept in home.agents.glob("*/active.json"):
        with session.turn(Place(kept.parent)):
            active.forget(kept, scenario)


def _changes(data: dict[str, Any], fields: tuple[str, ...]) -> dict[str, object]:
    """What `daemon.store.scenarios.Choices.change` takes. Raises UsageError."""
    if "model" in data:
        raise UsageError(
            "a scenario's model is not chosen here: whoever could would send prompts anywhere",
            hint="models: and engines: in the configuration; reef config path",
        )
    for name in data.keys() - set(fields):
        raise UsageError(f"unknown field {name!r:.40}", hint=f"one of {', '.join(fields)}")
    changes: dict[str, object] = {}
    if "policy" in data:
        policy = data["policy"]
        if policy is not None and policy not in list(Policy):
            raise UsageError(f"policy {policy!r:.40} is unknown", hint=f"one of {', '.join(Policy)}, or null")
        changes["policy"] = None if policy is None else Policy(policy)
    if "training_mode" in data:
        mode = data["training_mode"]
        if mode not in list(Training):
            raise UsageError(f"training_mode {mode!r:.40} is unknown", hint=f"one of {', '.join(Training)}")
        changes["training"] = Training(mode)
    return changes


async def _told(daemon: Runtime, scenario: str, changes: dict[str, object], status: int) -> Response:
    if changes:
        await read(daemon.choices.change, scenario, **changes)
    told = published.row(daemon, scenario)
    if changes or status == 201:
        daemon.changes.tell("scenario", told)
    return answer(told, status)
