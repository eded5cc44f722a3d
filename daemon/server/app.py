"""The routes: this list is the table of contents of the daemon.

The data plane is a plain ASGI callable in front of Starlette's routes: it streams both ways at once and must see the
client leave, and a StreamingResponse costs CPU on every chunk. The guard stands before both.
"""

import json
import logging
import re

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adapters import script
from daemon.core.errors import NotFound, ReefError
from daemon.server import (
    actions,
    cards,
    choosing,
    control,
    copies,
    exports,
    feed,
    hooks,
    imports,
    inference,
    install,
    jobs,
    measure,
    models,
    pins,
    proposals,
    published,
    purge,
    recording,
    releases,
    scrape,
    search,
    storekeeping,
    tasks,
    traces,
    watching,
)
from daemon.server.auth import SCRIPT, Guard
from daemon.server.checkouts import Checkouts
from daemon.server.control import answer
from daemon.server.inband import InBand
from daemon.server.incoming import ClientGone
from daemon.server.proxy import ROUTES, DataPlane, passes
from daemon.server.ratings import Ratings
from daemon.server.runtime import Runtime

_log = logging.getLogger("reef.server")

#: How much of a path the audit log keeps.
_PATH_MOST = 200

_routes = [
    Route("/", control.healthz),
    Route("/healthz", control.healthz),
    Route("/metrics", scrape.metrics),
    Route("/v1/models", inference.models),
    Route("/v1/models/{model:path}", inference.model),
    *(Route(path, inference.count_tokens, methods=["POST"]) for path in inference.COUNTS),
    Route("/reef/status", control.status),
    Route("/reef/sessions", search.sessions),
    Route("/reef/records", control.records, methods=["GET"]),
    Route("/reef/records", imports.record, methods=["POST"]),
    Route("/reef/records/batch", imports.batch, methods=["POST"]),
    Route("/reef/export", exports.export),
    Route("/reef/records/{receipt}", control.record),
    Route("/reef/records/{receipt}/changes", traces.changes),
    Route("/reef/records/{receipt}/{side}", control.record_bytes),
    Route("/reef/traces/{id}", traces.trace),
    Route("/reef/search", search.search),
    Route("/reef/rollups", search.rollups),
    Route("/reef/last", control.last),
    Route("/reef/events", feed.events),
    Route("/reef/live", watching.listed),
    Route("/reef/live/{receipt}", watching.watched),
    Route("/reef/config", control.configuration),
    Route("/reef/report", actions.report, methods=["POST"]),
    Route("/reef/hook/claude-code", hooks.claude_code, methods=["POST"]),
    Route("/reef/notice", hooks.notice),
    Route("/reef/undo", actions.undo, methods=["POST"]),
    Route("/reef/pin", pins.pin, methods=["POST"]),
    Route("/reef/purge", purge.purge, methods=["POST"]),
    Route("/reef/audit", purge.audit),
    Route("/reef/audit/check", purge.audit_check),
    Route("/reef/pause", recording.pause, methods=["POST"]),
    Route("/reef/resume", recording.resume, methods=["POST"]),
    Route("/reef/models", models.models, methods=["GET"]),
    Route("/reef/models", models.add_model, methods=["POST"]),
    Route("/reef/models/use", models.use_model, methods=["POST"]),
    Route("/reef/models/{name}", models.remove_model, methods=["DELETE"]),
    Route("/reef/shutdown", actions.shutdown, methods=["POST"]),
    Route("/reef/train", jobs.train, methods=["POST"]),
    Route("/reef/recipes", jobs.recipes),
    Route("/reef/jobs", jobs.listed, methods=["GET"]),
    Route("/reef/jobs", jobs.start, methods=["POST"]),
    Route("/reef/jobs/{id}", jobs.shown),
    Route("/reef/jobs/{id}/cancel", jobs.cancel, methods=["POST"]),
    Route("/reef/jobs/{id}/stream", jobs.stream),
    Route("/reef/jobs/{id}/claim", jobs.claim, methods=["POST"]),
    Route("/reef/jobs/{id}/answer", jobs.answered, methods=["POST"]),
    Route("/reef/jobs/{id}/model", jobs.model),
    Route("/reef/tasks", tasks.tasks, methods=["GET"]),
    Route("/reef/tasks", tasks.add, methods=["POST"]),
    Route("/reef/tasks/run", measure.run, methods=["POST"]),
    Route("/reef/tasks/{id}", tasks.remove, methods=["DELETE"]),
    Route("/reef/releases", releases.releases),
    Route("/reef/releases/rollback", releases.rollback, methods=["POST"]),
    Route("/reef/releases/pin", releases.pin, methods=["POST"]),
    Route("/reef/releases/unpin", releases.unpin, methods=["POST"]),
    Route("/reef/releases/gc", storekeeping.gc, methods=["POST"]),
    Route("/reef/releases/push", storekeeping.push, methods=["POST"]),
    Route("/reef/releases/{id}", releases.release),
    Route("/reef/releases/{id}/diff", releases.diff),
    Route("/reef/releases/{id}/card", cards.card),
    Route("/reef/releases/{id}/blame", cards.blame),
    Route("/reef/releases/{id}/approve", releases.approve, methods=["POST"]),
    Route("/reef/releases/{id}/reject", releases.reject, methods=["POST"]),
    Route("/reef/scenarios", published.scenarios, methods=["GET"]),
    Route("/reef/scenarios", choosing.create, methods=["POST"]),
    Route("/reef/scenarios/{scenario:path}/contract", published.contract),
    Route("/reef/scenarios/{scenario:path}/commits", published.commits),
    Route("/reef/scenarios/{scenario:path}/update", choosing.update, methods=["POST"]),
    Route("/reef/scenarios/{scenario:path}/releases", releases.releases),
    Route("/reef/scenarios/{scenario:path}/records", published.records),
    Route("/reef/scenarios/{scenario:path}/records/{receipt}", published.record),
    Route("/reef/scenarios/{scenario:path}/rollback", releases.scenario_rollback, methods=["POST"]),
    Route("/reef/scenarios/{scenario:path}/promote", releases.promote, methods=["POST"]),
    Route("/reef/scenarios/{scenario:path}", choosing.remove, methods=["DELETE"]),
    Route("/reef/harness", install.harness),
    Route("/reef/harness/releases", install.newer),
    Route("/reef/harness/releases/{id}/page", cards.page),
    Route("/reef/harness/versions", install.versions),
    Route("/reef/harness/check", install.check),
    Route(SCRIPT, install.install),
    Route("/reef/harness/adapters", install.adapters),
    Route("/reef/harness/proposals", proposals.propose, methods=["POST"]),
    Route("/reef/harness/working", copies.looked, methods=["GET"]),
    Route("/reef/harness/working", copies.edit, methods=["POST"]),
    Route("/reef/harness/working/keep", copies.keep, methods=["POST"]),
    Route("/reef/harness/working/discard", copies.discard, methods=["POST"]),
]


#: Below ``/v1``, what the daemon answers from what it knows itself.
_OURS = re.compile("|".join(("/v1/models(?:/.*)?", *inference.COUNTS))).fullmatch


def build(runtime: Runtime) -> ASGIApp:
    """The daemon as one ASGI application."""
    pages = Starlette(
        routes=_routes,
        exception_handlers={
            ReefError: _reef_error,
            HTTPException: _http_error,
            ClientGone: _gone,
            Exception: _unexpected,
        },
    )
    pages.state.runtime = runtime
    inference_plane = DataPlane(
        runtime.router,
        runtime.recorder,
        runtime.redactor,
        heads=runtime.heads,
        checks=runtime.checks,
        checkouts=Checkouts(),
        inband=InBand(runtime.store, Ratings(runtime.store, runtime.recorder, runtime.changes)),
        live=runtime.live,
        server=runtime.config.server,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if _is_remote_control(scope):
            said = runtime.redactor.redact(scope["path"][:_PATH_MOST].encode())[0].decode()
            runtime.store.audit.note("control", {"method": scope["method"], "path": said})
        if scope["type"] == "http" and not _OURS(scope["path"]) and passes(scope["method"], scope["path"]):
            await inference_plane(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return Guard(app, runtime.tokens, runtime.port)


def _is_remote_control(scope: Scope) -> bool:
    """Whether the control token, not the socket, is used to change something."""
    if scope["type"] != "http" or scope["method"] not in ("POST", "DELETE") or not scope["path"].startswith("/reef/"):
        return False
    server = scope.get("server")
    return bool(scope.get("reef.control")) and server is not None and server[1] is not None


def _rendered(error: ReefError, path: str) -> Response:
    if path.startswith("/v1/"):
        said = f"Reef: {error.message}" + (f" ({error.hint})" if error.hint else "")
        body = {"type": "error", "error": {"type": error.kind, "message": said, "code": error.kind, "param": None}}
        return Response(json.dumps(body), error.status, media_type="application/json")
    if path == SCRIPT:
        return Response(script.refusal(error), error.status, media_type="text/x-shellscript")
    return answer(error.envelope(), error.status)


async def _reef_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ReefError)
    return _rendered(error, request.url.path)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    here = "here are POST " + ", ".join(ROUTES) + " and GET /v1/models"
    hint = here if request.url.path.startswith("/v1/") else "GET /reef/status"
    failure = NotFound(f"no {request.method} {request.url.path} here", hint=hint)
    response = _rendered(failure, request.url.path)
    response.status_code = error.status_code
    return response


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _rendered(ReefError("an internal error", hint="reef logs"), request.url.path)
