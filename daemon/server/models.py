"""The control plane's models: what there is, fetching, using and removing one; where each name goes."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import asdict

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon.core.errors import ReefError, UsageError
from daemon.core.providers import Route, is_glob
from daemon.engines.base import ModelFile
from daemon.server.control import answer, body, runtime
from daemon.server.runtime import Runtime

_log = logging.getLogger("reef.models")


def _model_row(daemon: Runtime, model: ModelFile) -> dict[str, object]:
    active = daemon.models.active()
    loaded = daemon.embedded.weights()
    return asdict(model) | {
        "path": str(model.path),
        "active": active is not None and active.name == model.name,
        "loaded": loaded is not None and loaded.partition("+")[0] == model.sha256,
    }


async def models(request: Request) -> Response:
    """The files of the engine inside, and where each name goes: exact names, then globs in order, then the rest."""
    daemon = runtime(request)
    routes = {**daemon.config.models, "*": (Route(daemon.config.engine),)}
    ordered = sorted(routes.items(), key=lambda item: (is_glob(item[0]), item[0] == "*"))
    return answer(
        {
            "adding": daemon.fetching.all(),
            "items": [_model_row(daemon, model) for model in daemon.models.list()],
            "routes": [
                {"name": name, "engines": [_route_row(daemon, route) for route in where]} for name, where in ordered
            ],
        }
    )


def _route_row(daemon: Runtime, route: Route) -> dict[str, object]:
    """``key`` says where the provider's key comes from, never what it is."""
    remote = daemon.config.engines.get(route.engine)
    return asdict(route) | {"base_url": remote and remote.base_url, "key": remote and remote.key}


async def add_model(request: Request) -> Response:
    """Fetch a model, telling the progress as JSON lines; the last line is the model or the error."""
    data = await body(request)
    source, name = data.get("source"), data.get("name")
    if not isinstance(source, str) or not source:
        raise UsageError(
            f"source {source!r} is not a model's source", hint="a path, pypi:PACKAGE, hf:OWNER/REPO or default"
        )
    if name is not None and not isinstance(name, str):
        raise UsageError(f"name {name!r} is not text")
    lines = _adding(runtime(request), source, name, bool(data.get("use")))
    return StreamingResponse(lines, media_type="application/x-ndjson")


async def _adding(daemon: Runtime, source: str, name: str | None, use: bool) -> AsyncIterator[bytes]:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(line: object) -> None:
        lines.put_nowait(msgspec.json.encode(line) + b"\n")

    def progress(phase: str, done: int, total: int) -> None:
        put({"phase": phase, "done": done, "total": total})
        daemon.fetching.at(source, phase, done, total)

    async def work() -> None:
        try:
            model = await daemon.models.add(source, name=name, progress=progress)
            if use:
                daemon.models.use(model.name)
            put({"model": _model_row(daemon, model)})
        except ReefError as error:
            put(error.envelope())
        except OSError as error:  # a full disk, a file that is gone
            put(ReefError(f"{error.strerror or error}: {error.filename or daemon.home.models}").envelope())
        except Exception:  # the edge: whoever waits gets a last line, the log the traceback
            _log.exception("adding a model failed")
            put(ReefError("an internal error", hint="reef logs").envelope())
        finally:
            lines.put_nowait(None)

    task = asyncio.ensure_future(work())
    try:
        while (line := await lines.get()) is not None:
            yield line
    finally:
        task.cancel()
        daemon.fetching.over(source)


async def use_model(request: Request) -> Response:
    daemon = runtime(request)
    name = (await body(request)).get("name")
    if not isinstance(name, str):
        raise UsageError(f"name {name!r} is not a model's name", hint="reef models list")
    row = _model_row(daemon, daemon.models.use(name))
    daemon.changes.tell("model", {"name": name})
    return answer(row)


async def remove_model(request: Request) -> Response:
    daemon = runtime(request)
    model = daemon.models.remove(request.path_params["name"])
    daemon.changes.tell("model", {"name": model.name})
    return answer({"ok": True, "path": str(model.path), "deleted": not model.path.exists()})
