"""Routes by which a person says what is recorded: ``/reef/pause``, ``/reef/resume``."""

import asyncio
import math
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import ReefError, StoreError, UsageError
from daemon.server.control import answer, body, read, runtime
from daemon.server.runtime import Runtime

_PAUSE_MOST: Final = 366 * 86_400


async def pause(request: Request) -> Response:
    """Record nothing from now on: for ``seconds``, else until it is resumed."""
    daemon, data = runtime(request), await body(request)
    seconds = _seconds(data)
    try:
        await read(daemon.privacy.pause.begin, seconds)
    except OSError as error:
        raise StoreError(f"cannot write {daemon.home.paused}: {error.strerror}", hint="reef doctor") from error
    return await _state(daemon, "pause", {"seconds": seconds})


async def resume(request: Request) -> Response:
    daemon = runtime(request)
    await body(request)
    await read(daemon.privacy.pause.end)
    return await _state(daemon, "resume", {})


def _seconds(data: dict[str, Any]) -> float | None:
    for name in data.keys() - {"seconds"}:
        raise UsageError(f"unknown field {name!r:.40}", hint="a pause has seconds, or nothing")
    seconds = data.get("seconds")
    if seconds is None:
        return None
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not math.isfinite(seconds) or not 0 < seconds <= _PAUSE_MOST:
        raise UsageError(f"seconds {seconds!r:.40} is not a number above 0, at most {_PAUSE_MOST}")
    return float(seconds)


async def _state(daemon: Runtime, event: str, facts: dict[str, object]) -> Response:
    with suppress(ReefError):  # a full disk is no reason to go on recording
        await asyncio.wrap_future(daemon.store.audit.note(event, facts))
    state = daemon.recorder.state()
    daemon.changes.tell("recording", state)
    return answer(state)
