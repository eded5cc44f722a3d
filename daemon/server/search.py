"""Finding and summing up what is recorded: queries over records and sessions, sums by hour and day.

A page may be short and still have a next one: the store looks at a bounded number of records for each.
"""

import time
from dataclasses import replace
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.core.orders import Order
from daemon.server.control import answer, page_limit, read, runtime
from daemon.store.query import Field, Query, moment, parse
from daemon.store.rollups import NANOSECONDS, Unit

#: Hours or days in one answer, and how many there are without being asked.
_UNITS_MOST: Final = 1100
_UNITS: Final = {"hour": 48, "day": 30}
_IDS_MOST: Final = 500
_BY: Final = ("scenario", "agent", "model")


async def search(request: Request) -> Response:
    """``GET /reef/search?q=``: records, newest first, each with the line around the words."""
    page = await read(runtime(request).store.search, asked(request), limit=page_limit(request), before=cursor(request))
    return answer({"items": page.items, "next": page.next, "unindexed": page.unindexed})


async def sessions(request: Request) -> Response:
    """``GET /reef/sessions``: latest activity first; with ``q`` those that have such records, by their newest one; with
    ``sort`` (tokens, cost, latency, rating) all of them, the most first.

    ``ids`` (with commas between) asks for those as they are now, and for nothing else.
    ``before`` and ``after`` take a row's ``seq``, its place in this list. ``total`` is told where it is known.
    """
    store, query = runtime(request).store, request.query_params
    if ids := [id for id in query.get("ids", "").split(",") if id]:
        if len(ids) > _IDS_MOST:
            raise UsageError(f"{len(ids)} ids, at most {_IDS_MOST} are read")
        return answer({"items": await read(store.sessions_named, ids), "next": None, "total": None})
    place = {"before": cursor(request), "after": query.get("after")}
    order = _order(request)
    if order is not Order.ACTIVITY:
        found, more = await read(store.sessions_by, order, limit=page_limit(request), **place)
        return answer({"items": found, "next": more, "total": None})
    if query.get("q"):
        found, more = await read(store.sessions_with, asked(request), limit=page_limit(request), **place)
        whole = more is None and not any(place.values())
        return answer({"items": found, "next": more, "total": len(found) if whole else None})
    items, more = await read(store.sessions, scenario=query.get("scenario"), limit=page_limit(request), **place)
    total = None if query.get("scenario") else (await read(store.counts))["sessions"]
    return answer({"items": items, "next": more, "total": total})


def _order(request: Request) -> Order:
    query = request.query_params
    given = query.get("sort", Order.ACTIVITY)
    if given not in tuple(Order):
        raise UsageError(f"sort={given[:40]!r} is none", hint=f"one of {', '.join(Order)}")
    if given != Order.ACTIVITY and (query.get("q") or query.get("scenario")):
        raise UsageError(
            f"sort={given} goes over all sessions, not over what a query or a scenario leaves",
            hint="without it, latest activity first; or a query such as 'scenario:work tokens:>50k'",
        )
    return Order(given)


async def rollups(request: Request) -> Response:
    """``GET /reef/rollups?unit=hour|day&since=&by=agent,model&scenario=``: sums, newest first."""
    query = request.query_params
    unit = query.get("unit", "day")
    if unit not in NANOSECONDS:
        raise UsageError(f"unit={unit[:40]!r} is none", hint=f"one of {', '.join(NANOSECONDS)}")
    by = tuple(name for name in query.get("by", "").split(",") if name)
    if unknown := [name for name in by if name not in _BY]:
        raise UsageError(f"by={unknown[0][:40]!r} is none", hint=f"any of {', '.join(_BY)}, with commas between")
    now, length = time.time_ns(), NANOSECONDS[unit]
    since = moment("since", query["since"], now) if query.get("since") else now - _UNITS[unit] * length
    if since < now - _UNITS_MOST * length:
        raise UsageError(
            f"since={query['since']} is more than {_UNITS_MOST} {unit}s ago", hint="unit=day, or a later one"
        )
    rows = await read(
        runtime(request).store.rollups, cast(Unit, unit), since_ns=since, scenario=query.get("scenario"), by=by
    )
    return answer({"items": rows, "unit": unit, "since_ns": since})


def asked(request: Request) -> Query:
    query = parse(request.query_params.get("q", ""))
    scenario = request.query_params.get("scenario")
    return replace(query, fields=(*query.fields, Field("scenario", scenario))) if scenario else query


def cursor(request: Request) -> str | None:
    return request.query_params.get("before") or request.query_params.get("cursor")
