"""Working copies over the control plane: made, looked at, and decided about file by file."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import NotFound, ReefError, UsageError
from daemon.server.control import answer, body, runtime
from daemon.server.releases import scenario_of

_PATHS: Final = 200


async def looked(request: Request) -> Response:
    """All working copies, or one scenario's, looked at now."""
    working = runtime(request).working
    known = await working.known()
    if "scenario" in request.query_params:
        scenario = scenario_of(request)
        if scenario not in known:
            raise NotFound(f"{scenario!r} has no working copy", hint=f"reef harness edit --scenario {scenario}")
        known = [scenario]
    return answer({"items": [await working.look(scenario) for scenario in known], "next": None})


async def edit(request: Request) -> Response:
    """Make one, unless it is there."""
    data = await body(request)
    found = await runtime(request).working.edit(scenario_of(request, data))
    if found.trouble:
        raise ReefError(found.trouble, hint="reef harness status")
    return answer(found)


async def keep(request: Request) -> Response:
    return await _decide(request, keep=True)


async def discard(request: Request) -> Response:
    return await _decide(request, keep=False)


async def _decide(request: Request, *, keep: bool) -> Response:
    data = await body(request)
    return answer(await runtime(request).working.decide(scenario_of(request, data), _files(data), keep=keep))


def _files(data: dict[str, Any]) -> list[str]:
    files = data.get("files") or []
    if not isinstance(files, list) or len(files) > _PATHS or not all(isinstance(one, str) for one in files):
        raise UsageError(f"files {files!r:.80} is not a list of at most {_PATHS} paths")
    return files
