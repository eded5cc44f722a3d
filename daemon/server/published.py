"""A scenario's records, as the published protocol has them: ``GET /reef/scenarios/{s}/records[/{id}]``.

Inferences only: here a report stands beside the record that it is about. What was redacted stays so.
"""

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import NotFound, UsageError
from daemon.core.rows import RecordRow
from daemon.server.control import answer, is_number, page_limit, read, runtime
from daemon.server.exports import envelope
from daemon.server.identity import scenario_name


async def records(request: Request) -> Response:
    """Oldest first, those after ``after_sequence``."""
    query, scenario = request.query_params, scenario_name(request.path_params["scenario"])
    after, kind = query.get("after_sequence", "0"), query.get("request_type", "inference")
    if not is_number(after):
        raise UsageError(f"after_sequence={after[:40]!r} is not a number", hint="use next_after_sequence")
    if kind != "inference":
        raise UsageError(f"request_type={kind[:40]!r} is not listed", hint="GET /reef/records/RECEIPT has its reports")
    store = runtime(request).store
    rows, following = await read(store.records, scenario=scenario, limit=page_limit(request), after=after)
    listed = [_metadata(row) for row in rows]
    return answer({"scenario": scenario, "records": listed, "next_after_sequence": rows[-1].seq if following else None})


async def record(request: Request) -> Response:
    """One of them with its payload, as `POST /reef/records` takes it."""
    store, receipt = runtime(request).store, request.path_params["receipt"]
    scenario = scenario_name(request.path_params["scenario"])
    row = await read(store.record, receipt)
    if row.scenario != scenario:
        raise NotFound(f"scenario {scenario!r} has no record {receipt!r}", hint=f"it is in {row.scenario!r}")
    return answer(_metadata(row) | await read(envelope, store, row))


def _metadata(row: RecordRow) -> dict[str, Any]:
    """The protocol's fields, then ours."""
    named = {
        "sequence": row.seq, "agent_record_id": row.receipt, "request_type": "inference",
        "created_at": row.started_ns / 1e9, "references": [],
    }  # fmt: skip
    return named | asdict(row)
