"""The control plane, reading side: status, sessions, records. What the CLI and the dashboard show.

Every list is cursored. Reads run off the loop; nothing here touches the data plane.
"""

import asyncio
import os
import time
from dataclasses import asdict, replace
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import NotFound, StoreError, UsageError
from daemon.core.learning import JobRow
from daemon.core.version import PROTOCOL, __version__
from daemon.server.incoming import read_body
from daemon.server.runtime import Runtime
from daemon.wire import jsontext

#: Runs a read of the store off the loop.
read = asyncio.to_thread

_PAGE = 50
_PAGE_MOST = 500
#: A report with all its references and metadata is far smaller.
_BODY_MOST = 4 << 20


def answer(data: object, status: int = 200) -> Response:
    """JSON from dataclasses, mappings and lists."""
    return Response(msgspec.json.encode(data), status, media_type="application/json")


def runtime(request: Request) -> Runtime:
    found: Runtime = request.app.state.runtime
    return found


async def healthz(request: Request) -> Response:
    return answer({"ok": True, "version": __version__, "protocol": PROTOCOL, "pid": os.getpid()})


async def status(request: Request) -> Response:
    daemon = runtime(request)
    recording = daemon.recorder.state()
    counts: dict[str, int] = {"records": 0, "sessions": 0, "reports": 0}
    last: object = None
    jobs: list[JobRow] = []
    try:
        counts, last, jobs = await asyncio.gather(
            read(daemon.store.counts), read(daemon.store.last), read(daemon.store.learning.open_jobs)
        )
    except StoreError as error:  # the one question that must be answered while the store cannot be read
        recording = replace(recording, state="degraded", detail=error.message)
    active = daemon.models.active()
    return answer(
        {
            "version": __version__,
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "started_ns": daemon.started_ns,
            "uptime_s": time.monotonic() - daemon.began,
            "home": str(daemon.home.root),
            "url": f"http://127.0.0.1:{daemon.port}",
            "port": daemon.port,
            "socket": str(daemon.home.socket),
            "config_path": str(daemon.config_path) if daemon.config_path else None,
            "recording": recording,
            "engines": daemon.engines(),
            "default_engine": daemon.config.engine,
            "model": active.name if active else None,
            "context": daemon.context(),
            "counts": counts,
            "last": last,
            "releases": daemon.heads.rows(),
            "waiting": daemon.heads.waiting(),
            "waiting_in": daemon.heads.waiting_in(),
            "jobs": jobs,
            "log": str(daemon.home.log),
            "notes": notes(daemon),
            "scores": {name: one.scores for name, one in daemon.config.scenarios.items() if one.scores},
        }
    )


def notes(daemon: Runtime) -> list[str]:
    """What a person should know that no other field says."""
    spans = daemon.telemetry.note() if daemon.telemetry else None
    others = [daemon.learning.scheduler.problem, spans]
    aside = [f"a damaged database is kept as {path}; records go into a new one" for path in daemon.store.kept_aside()]
    return [*daemon.heads.notes(), *daemon.working.notes(), *(note for note in others if note), *aside]


async def records(request: Request) -> Response:
    query = request.query_params
    items, cursor = await read(
        runtime(request).store.records,
        session=query.get("session"),
        limit=page_limit(request),
        before=query.get("before"),
        after=query.get("after"),
    )
    return answer({"items": items, "next": cursor})


async def record(request: Request) -> Response:
    store, receipt = runtime(request).store, request.path_params["receipt"]
    row = await read(store.record, receipt)
    reports = await read(store.reports_on, [receipt])
    signals, place = await asyncio.gather(read(store.signals_on, [row.seq]), read(store.place, row.seq))
    told = {"reports": reports.get(receipt, []), "signals": signals.get(row.seq, [])}
    return answer(asdict(row) | asdict(place) | told)


async def record_bytes(request: Request) -> Response:
    store, receipt = runtime(request).store, request.path_params["receipt"]
    side = request.path_params["side"]
    if side not in ("request", "response"):
        raise NotFound(f"a record has no {side!r}", hint="request or response")
    data = await read(store.request if side == "request" else store.response, receipt)
    return Response(data, media_type="application/octet-stream")


async def last(request: Request) -> Response:
    """The last answer that is recorded, with ``run`` of that one; ``unrecorded`` says why a later one is not."""
    daemon, scenario, run = runtime(request), request.query_params.get("scenario"), request.query_params.get("run")
    store = daemon.store
    row = await (read(store.last_of_run, run, scenario) if run else read(store.last, scenario))
    if row is None and run:
        raise NotFound(f"the run {run[:80]!r} has no recorded answer yet", hint="ask its agent something first")
    if row is None and (await read(store.sessions, scenario=scenario, limit=1))[0]:
        raise NotFound(
            "the last session has no answer to rate",
            hint="reef traces show says why; an answer of another one is named by its receipt",
        )
    if row is None:
        raise NotFound(
            "nothing is recorded yet", hint='eval "$(reef env)", then use an agent in that shell; or: reef demo'
        )
    return answer(asdict(row) | {"unrecorded": daemon.recorder.passed_since(row.started_ns)})


async def configuration(request: Request) -> Response:
    return answer(runtime(request).config)


def page_limit(request: Request) -> int:
    given = request.query_params.get("limit", str(_PAGE))
    if not is_number(given) or int(given) == 0:
        raise UsageError(f"limit={given[:40]!r} is not a number from 1 on", hint="for example limit=50")
    return min(int(given), _PAGE_MOST)


def is_number(given: str) -> bool:
    """ASCII digits only (``²`` is a digit too), and few enough for the database."""
    return given.isascii() and given.isdigit() and len(given) <= 18


async def body(request: Request, most: int = _BODY_MOST) -> dict[str, Any]:
    """The JSON object of a mutation, of at most so many bytes. Raises UsageError when it is none, and TooLarge."""
    raw = await read_body(request.scope, request.receive, most)
    try:
        data = jsontext.decode(raw or b"{}")
    except jsontext.NotJson as error:
        raise UsageError(f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"the body is {type(data).__name__}, not an object")
    return data
