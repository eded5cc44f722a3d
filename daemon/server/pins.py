"""``POST /reef/pin``: sessions that a person calls golden, or no longer does."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.server.control import answer, body, runtime

_FIELDS = ("sessions", "pinned")
_MANY = 500


async def pin(request: Request) -> Response:
    """``changed`` are those that were not so before: what an undo takes back."""
    daemon, data = runtime(request), await body(request)
    for name in data.keys() - set(_FIELDS):
        raise UsageError(f"unknown field {name!r:.40}", hint=f"a pin has {', '.join(_FIELDS)}")
    sessions, pinned = data.get("sessions"), data.get("pinned", True)
    if not isinstance(sessions, list) or not all(isinstance(one, str) for one in sessions) or not sessions:
        raise UsageError(f"sessions {sessions!r:.80} is not a list of ids")
    if len(sessions) > _MANY:
        raise UsageError(f"{len(sessions)} sessions, the limit is {_MANY}")
    if not isinstance(pinned, bool):
        raise UsageError(f"pinned {pinned!r:.40} is neither true nor false")
    changed = await asyncio.wrap_future(daemon.store.pin(list(dict.fromkeys(sessions)), pinned=pinned))
    if changed:
        daemon.changes.tell("pin", {"sessions": changed, "pinned": pinned})
    return answer({"sessions": sessions, "pinned": pinned, "changed": changed})
