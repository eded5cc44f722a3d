"""Scenarios as the published protocol reads them: which there are, what one accepts, its commits and its records.

Records are inferences only: here a report stands beside the record that it is about. What was redacted stays so.
"""

from dataclasses import asdict
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import NotFound, ReefError, UsageError
from daemon.core.releases import BASE_RELEASE, Release, ReleaseKind
from daemon.core.rows import RecordRow
from daemon.server.control import answer, is_number, page_limit, read, runtime
from daemon.server.exports import envelope
from daemon.server.identity import DEFAULT_SCENARIO, scenario_name
from daemon.server.runtime import Runtime

#: Signals of a recipe that come with a report; the others come with the records themselves.
_REPORTED: Final = frozenset({"note", "mark", "edit"})
_RECORD_IDS: Final = 100


# -- scenarios --------------------------------------------------------------------------------------


async def scenarios(request: Request) -> Response:
    """Every one: those with records, releases or settings, and ``default``. The protocol calls them ``scenarios``."""
    daemon = runtime(request)
    rows = [row(daemon, name) for name in await read(names, daemon)]
    return answer({"items": rows, "scenarios": rows, "next": None})


def names(daemon: Runtime) -> list[str]:
    """By name. Blocking. A removed one is there again once something new is recorded under it."""
    found = {DEFAULT_SCENARIO, *daemon.releases.scenarios(), *daemon.choices.names(), *daemon.config.scenarios}
    for name in daemon.store.learning.scenarios():
        gone = daemon.choices.get(name).removed_ns
        last = None if gone is None else daemon.store.last(name)
        if gone is None or (last is not None and last.started_ns > gone):
            found.add(name)
    return sorted(found)


async def known(request: Request) -> str:
    """The scenario that the path names. Raises NotFound where there is none."""
    scenario = scenario_name(request.path_params["scenario"])
    if scenario not in await read(names, runtime(request)):
        raise NotFound(f"no scenario is called {scenario!r}", hint="reef scenarios list")
    return scenario


def row(daemon: Runtime, name: str) -> dict[str, Any]:
    """One as it is listed: by our word for it and by the protocol's."""
    head, choice = daemon.heads.head(name), daemon.choices.get(name)
    return {
        "name": name,
        "scenario": name,
        "release_id": head.id if head else BASE_RELEASE,
        "content_id": head.commit if head else None,
        "number": head.number if head else 0,
        "policy": policy(daemon, name),
        "training_mode": choice.training,
    }


def policy(daemon: Runtime, name: str) -> str:
    """What becomes of its accepted candidates."""
    configured = daemon.config.scenarios.get(name)
    own = daemon.choices.get(name).policy or (configured.policy if configured else None)
    return own or daemon.config.learning.policy


async def contract(request: Request) -> Response:
    """What this scenario accepts, and what is done with it."""
    daemon, scenario = runtime(request), await known(request)
    recipe, problem = daemon.config.reef.get("recipe"), None
    told: dict[str, Any] = {"signals": [], "config": {}}
    if recipe is not None:
        try:
            described = await daemon.learning.catalogue.describe(str(recipe), {})
            recipe = described["name"]
            told = await daemon.learning.catalogue.describe(recipe, await daemon.learning.scheduler.settings(recipe))
            problem = daemon.learning.scheduler.problem
        except ReefError as error:
            problem = error.message
    configured = daemon.config.scenarios.get(scenario)
    return answer(
        {
            **row(daemon, scenario),
            "recipe": recipe,
            "processor": "stream",
            "required_request_types": ["inference", *(["report"] if _REPORTED & set(told["signals"]) else [])],
            "signals": told["signals"],
            "config": told["config"],
            "scores": configured.scores if configured else None,
            "tasks": len(await read(daemon.store.tasks, scenario)),
            "status": {"problem": problem},
        }
    )


# -- commits ----------------------------------------------------------------------------------------


async def commits(request: Request) -> Response:
    """The chain, oldest first, those after ``after_step``; with ``record_id``, those that learned from one of them."""
    query, scenario = request.query_params, scenario_name(request.path_params["scenario"])
    after, wanted = query.get("after_step", "0"), frozenset(query.getlist("record_id"))
    if not is_number(after):
        raise UsageError(f"after_step={after[:40]!r} is not a number", hint="use next_after_step")
    if len(wanted) > _RECORD_IDS:
        raise UsageError(f"{len(wanted)} record ids, the limit is {_RECORD_IDS}")
    rows, more = await read(
        runtime(request).releases.since, scenario, int(after), page_limit(request), records=wanted or None
    )
    listed = [_commit(release) for release in rows]
    return answer({"scenario": scenario, "commits": listed, "next_after_step": rows[-1].number if more else None})


def _commit(release: Release) -> dict[str, Any]:
    gate = release.gate
    return {
        "step": release.number,
        "operation": "rollback" if release.kind is ReleaseKind.ROLLBACK else "training",
        "operation_verified": True,
        "recorded_at": release.created_ns / 1e9,
        "release_id": release.id,
        "artifact_ref": release.commit,
        "pending": None,
        "consumed_ids": release.records,
        "metrics": None if gate is None else {
            "verdict": gate.verdict, "wins": gate.wins, "losses": gate.losses, "ties": gate.ties,
            "e_value": gate.e_value, "p_value": gate.p_value,
        },
    } | {name: getattr(release, name) for name in ("kind", "parent", "reason", "recipe", "job")}  # fmt: skip


# -- records ----------------------------------------------------------------------------------------


async def records(request: Request) -> Response:
    """Oldest first, those after ``after_sequence``."""
    query, scenario = request.query_params, scenario_name(request.path_params["scenario"])
    after, kind = query.get("after_sequence", "0"), query.get("request_type", "inference")
    if not is_number(after):
        raise UsageError(f"after_sequence={after[:40]!r} is not a number", hint="use next_after_sequence")
    if kind != "inference":
        raise UsageError(f"request_type={kind[:40]!r} is not listed", hint="GET /reef/records/RECEIPT has its reports")
    store = runtime(request).store
    rows, following = await read(store.records, scenario=scenario, limit=page_limit(request), after=after)
    listed = [_metadata(row) for row in rows]
    return answer({"scenario": scenario, "records": listed, "next_after_sequence": rows[-1].seq if following else None})


async def record(request: Request) -> Response:
    """One of them with its payload, as `POST /reef/records` takes it."""
    store, receipt = runtime(request).store, request.path_params["receipt"]
    scenario = scenario_name(request.path_params["scenario"])
    row = await read(store.record, receipt)
    if row.scenario != scenario:
        raise NotFound(f"scenario {scenario!r} has no record {receipt!r}", hint=f"it is in {row.scenario!r}")
    return answer(_metadata(row) | await read(envelope, store, row))


def _metadata(row: RecordRow) -> dict[str, Any]:
    """The protocol's fields, then ours."""
    named = {
        "sequence": row.seq, "agent_record_id": row.receipt, "request_type": "inference",
        "created_at": row.started_ns / 1e9, "references": [],
    }  # fmt: skip
    return named | asdict(row)
