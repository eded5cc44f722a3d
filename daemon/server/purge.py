"""``POST /reef/purge``: what a person wants forgotten; and ``/reef/audit``, what was decided."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon.core.errors import ReefError, UsageError
from daemon.core.privacy import Purge, Purged
from daemon.server.control import answer, body, page_limit, read, runtime
from daemon.server.identity import scenario_name
from daemon.server.runtime import Runtime

_FIELDS: Final = ("sessions", "receipts", "before_ns", "scenario", "repository", "pinned", "dry_run")
_NAMED_MOST: Final = 500


async def purge(request: Request) -> Response:
    """With ``dry_run`` what would go; else progress as JSON lines, and last what went, or the error."""
    daemon, data = runtime(request), await body(request)
    wanted, dry_run = parse(data), data.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise UsageError(f"dry_run {dry_run!r:.40} is neither true nor false")
    planned = await read(daemon.store.purges.plan, wanted)
    if dry_run:
        return answer({"purged": planned})
    return StreamingResponse(_purging(daemon, wanted), media_type="application/x-ndjson")


def parse(data: dict[str, Any]) -> Purge:
    """What is pinned goes where it is named, or where ``pinned`` says so.

    Raises UsageError naming the field and its value.
    """
    for name in data.keys() - set(_FIELDS):
        raise UsageError(f"unknown field {name!r:.40}", hint=f"a purge has {', '.join(_FIELDS)}")
    before, repository, scenario = data.get("before_ns"), data.get("repository"), data.get("scenario")
    if before is not None and (type(before) is not int or not 0 < before < 1 << 63):
        raise UsageError(f"before_ns {before!r:.40} is not a moment in nanoseconds since 1970")
    if repository is not None and not (isinstance(repository, str) and repository.startswith("/")):
        raise UsageError(f"repository {repository!r:.80} is not an absolute path")
    if scenario is not None and not isinstance(scenario, str):
        raise UsageError(f"scenario {scenario!r:.40} is not a name")
    sessions, receipts = _names(data, "sessions"), _names(data, "receipts")
    pinned = data.get("pinned", bool(sessions or receipts))
    if not isinstance(pinned, bool):
        raise UsageError(f"pinned {pinned!r:.40} is neither true nor false")
    return Purge(
        sessions=sessions, receipts=receipts, before_ns=before, pinned=pinned,
        scenario=None if scenario is None else scenario_name(scenario),
        repository=repository,
    )  # fmt: skip


def _names(data: dict[str, Any], field: str) -> tuple[str, ...]:
    given = data.get(field) or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise UsageError(f"{field} {given!r:.80} is not a list of ids")
    if len(given) > _NAMED_MOST:
        raise UsageError(f"{len(given)} {field}, the limit is {_NAMED_MOST}")
    return tuple(given)


async def _purging(daemon: Runtime, wanted: Purge) -> AsyncIterator[bytes]:
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def put(line: object) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, msgspec.json.encode(line) + b"\n")

    def work() -> None:
        try:
            purged = daemon.store.purges.run(
                wanted, lambda phase, done, total: put({"phase": phase, "done": done, "total": total})
            )
            for job in purged.jobs:
                daemon.learning.jobs.directory(job).forget()
            put({"purged": asdict(purged)})
            loop.call_soon_threadsafe(_told, daemon, purged)
        except ReefError as error:
            put(error.envelope())
        except OSError as error:
            put(ReefError(f"{error.strerror or error}: {error.filename or daemon.home.database}").envelope())
        finally:
            loop.call_soon_threadsafe(lines.put_nowait, None)

    task = asyncio.ensure_future(asyncio.to_thread(work))  # goes on to its end, whoever watches
    while (line := await lines.get()) is not None:
        yield line
    await task


def _told(daemon: Runtime, purged: Purged) -> None:
    daemon.changes.forget()
    daemon.changes.tell("purge", {"records": purged.records, "sessions": purged.sessions})


async def audit(request: Request) -> Response:
    """Newest first."""
    items, cursor = await read(
        runtime(request).store.audit.page, page_limit(request), request.query_params.get("before")
    )
    return answer({"items": items, "next": cursor})


async def audit_check(request: Request) -> Response:
    """Whether the chain is whole: ``{entries, hash, wrong}``."""
    entries, hash, wrong = await read(runtime(request).store.audit.check)
    return answer({"entries": entries, "hash": hash, "wrong": wrong})
