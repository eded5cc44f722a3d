"""Housekeeping of the release store that a person asks for: giving space back, pushing to a remote."""

import asyncio
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.server.announcing import Announcer
from daemon.server.control import answer, body, read, runtime


async def gc(request: Request) -> Response:
    """``days``: candidates that were turned down so long ago go too; not given, it is as the configuration says."""
    daemon, data = runtime(request), await body(request)
    days = data.get("days", daemon.config.releases.rejected_days)
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= 36_500:
        raise UsageError(f"days {days!r:.40} is no number of days", hint="0 gives up all that were turned down")
    swept = await read(daemon.releases.gc, days)
    await Announcer(daemon.store, daemon.changes).swept("person", swept)
    return answer(swept)


async def push(request: Request) -> Response:
    """``remote``: a folder or an address; ``releases.remote`` of the configuration, where it is not given."""
    daemon, data = runtime(request), await body(request)
    remote = data.get("remote") or daemon.config.releases.remote
    if not isinstance(remote, str) or not remote:
        raise UsageError("no remote is named", hint="reef releases push FOLDER, or releases.remote in config.yaml")
    pushed = await read(daemon.releases.push, remote)
    facts = {"scenarios": len(pushed.scenarios), "large_files": pushed.large_files, "by": "person"}
    await asyncio.wrap_future(daemon.store.audit.note("release_push", facts))
    return answer(asdict(pushed))
