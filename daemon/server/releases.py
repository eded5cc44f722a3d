"""The control plane's releases: lists, one with its card and texts, differences; approve, reject, roll back, pin.

``/reef/scenarios/…`` are the published protocol's names for the same. Nothing is decided here, that is
`daemon.learning.publish`; store and engine are waited for off the loop.
"""

from dataclasses import asdict
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import NotFound, UsageError
from daemon.core.releases import BASE_RELEASE, Release, ReleaseState
from daemon.learning import publish
from daemon.server.control import answer, body, page_limit, read, runtime
from daemon.server.heads import row
from daemon.server.identity import scenario_name
from recipes.gate import card

_STATES: Final = {
    "released": frozenset({ReleaseState.RELEASED}),
    "pending": frozenset({ReleaseState.PENDING}),
    "rejected": frozenset({ReleaseState.REJECTED}),
    "kept": frozenset({ReleaseState.KEPT}),
    "all": frozenset(ReleaseState),
}


def scenario_of(request: Request, data: dict[str, Any] | None = None) -> str:
    """Named by the path, the query, the header or the body; else ``default``. Raises UsageError."""
    query, header = request.query_params.get("scenario"), request.headers.get("x-reef-scenario")
    given = request.path_params.get("scenario") or query or header or (data or {}).get("scenario")
    if given is not None and not isinstance(given, str):
        raise UsageError(f"scenario {given!r} is not a name")
    return scenario_name(given)


async def releases(request: Request) -> Response:
    query = request.query_params
    state = query.get("state", "released")
    if state not in _STATES:
        raise UsageError(f"state {state[:40]!r} is unknown", hint=f"one of {', '.join(_STATES)}")
    before = query.get("before")
    if before is not None and not (before.isascii() and before.isdecimal() and len(before) < 20):
        raise UsageError(f"{before[:40]!r} is not a cursor", hint="use `next` of the page before")
    items, cursor = await read(
        runtime(request).releases.list,
        scenario_of(request),
        page_limit(request),
        before,
        states=_STATES[state],
    )
    pinned = runtime(request).heads.held_at(scenario_of(request))
    return answer({"items": [row(item) for item in items], "next": cursor, "pinned": pinned})


async def release(request: Request) -> Response:
    store, scenario = runtime(request).releases, scenario_of(request)
    found = await read(store.get, scenario, request.path_params["id"])
    texts = await read(store.files, found)
    clone = [" ".join(words) for words in store.clone_commands(scenario, "FOLDER")]
    acts = await read(store.acts, found)
    routing = await read(store.routing, found)
    told = {"card": card.text(found), "files_text": texts, "routing": routing, "clone": clone, "acts": acts}
    return answer(asdict(found) | told | {"pinned": runtime(request).heads.held_at(scenario) == found.id})


async def diff(request: Request) -> Response:
    text = await read(
        runtime(request).releases.diff,
        scenario_of(request),
        request.path_params["id"],
        request.query_params.get("against"),
    )
    return answer({"diff": text})


async def approve(request: Request) -> Response:
    data = await body(request)
    force = data.get("force", False)
    if not isinstance(force, bool):
        raise UsageError(f"force {force!r} is neither true nor false")
    scenario = scenario_of(request, data)
    return answer(row(await publish.approve(runtime(request), scenario, request.path_params["id"], force=force)))


async def reject(request: Request) -> Response:
    data = await body(request)
    return answer(row(await publish.reject(runtime(request), scenario_of(request, data), request.path_params["id"])))


async def rollback(request: Request) -> Response:
    """``to`` names the release to go back to; none: the one before the head."""
    data = await body(request)
    to, reason = data.get("to"), data.get("reason") or ""
    for name, value in (("to", to), ("reason", reason)):
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} {value!r} is not text")
    return answer(row(await publish.rollback(runtime(request), scenario_of(request, data), to, reason)))


async def pin(request: Request) -> Response:
    """Hold a scenario's clients at ``release``; answers with the release that they run now."""
    data = await body(request)
    given = data.get("release")
    if not isinstance(given, str):
        raise UsageError(f"release {given!r:.40} is not a release", hint="reef releases list")
    return answer(row(await publish.pin(runtime(request), scenario_of(request, data), given)))


async def unpin(request: Request) -> Response:
    """Let them follow the head again; answers with it."""
    data = await body(request)
    head = await publish.unpin(runtime(request), scenario_of(request, data))
    return answer(row(head) if head else {"id": BASE_RELEASE, "scenario": scenario_of(request, data)})


# -- the published protocol's names -------------------------------------------------------------------


async def scenario_rollback(request: Request) -> Response:
    release_id = await _release_id(request)
    return _published(await publish.rollback(runtime(request), scenario_of(request), release_id))


async def promote(request: Request) -> Response:
    release_id = await _release_id(request)
    return _published(await publish.approve(runtime(request), scenario_of(request), release_id))


def _published(release: Release) -> Response:
    """A release with the protocol's words for its id and its content."""
    return answer(row(release) | {"release_id": release.id, "content_id": release.commit})


async def _release_id(request: Request) -> str:
    given = (await body(request)).get("release_id")
    if given is None:
        raise UsageError("release_id is missing", hint="GET /reef/scenarios/NAME/releases lists them")
    if not isinstance(given, str):
        raise NotFound(f"no release is called {given!r}", hint="GET /reef/scenarios/NAME/releases lists them")
    return given
