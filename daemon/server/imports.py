"""Records from elsewhere: ``POST /reef/records`` and ``/reef/records/batch``, as the published protocol has them.

A line is an envelope ``{agent_record_id, request_type, payload}``: an inference with its ``response`` beside the
request's own fields, or a report. A batch is kept whole or not at all, and may be sent again.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.core.records import Dialect, End, Exchange
from daemon.core.redact import Redactor
from daemon.core.releases import BASE_RELEASE
from daemon.server.actions import parse_report
from daemon.server.control import answer, body, runtime
from daemon.server.identity import identify, scenario_name
from daemon.server.proxy import ROUTES
from daemon.store.imports import Line, NewRecord
from daemon.wire import jsontext
from daemon.wire.base import dialect as codec_of

#: As the public client counts: its requests stay below.
BODY_MOST: Final = 10 << 20
_BATCH_MOST: Final = 1000
_ID_MOST: Final = 128
_ENVELOPE: Final = frozenset({"agent_record_id", "request_type", "payload"})
#: What serves an imported record, in lists.
_ENGINE: Final = "import"
_PATHS: Final = {name: path for path, name in ROUTES.items()}


async def record(request: Request) -> Response:
    """One envelope."""
    return answer((await _kept(request, [await body(request, BODY_MOST)]))[0])


async def batch(request: Request) -> Response:
    """``{"records": [envelope, …]}``, 1 to 1000."""
    data = await body(request, BODY_MOST)
    records = data.get("records")
    if set(data) != {"records"} or not isinstance(records, list):
        raise UsageError("a batch is {records: [envelope, …]}", hint=f"1 to {_BATCH_MOST} envelopes")
    if not 1 <= len(records) <= _BATCH_MOST:
        raise UsageError(f"{len(records)} records in a batch", hint=f"1 to {_BATCH_MOST}")
    return answer({"records": await _kept(request, records)})


async def _kept(request: Request, envelopes: list[Any]) -> list[dict[str, str]]:
    daemon = runtime(request)
    whose = Whose(
        scenario_name(request.headers.get("x-reef-scenario")), identify(dict(request.headers)).agent, daemon.redactor
    )
    lines = await asyncio.to_thread(lambda: [_line(whose, n, one) for n, one in enumerate(envelopes)])
    await asyncio.wrap_future(daemon.store.import_lines(lines))
    return [
        {
            "agent_record_id": one["agent_record_id"],
            "scenario": whose.scenario,
            "request_type": one["request_type"],
        }
        for one in envelopes
    ]


@dataclass(frozen=True, slots=True)
class Whose:
    """What holds for all lines of a request."""

    scenario: str
    agent: str | None
    redactor: Redactor


def _line(whose: Whose, number: int, envelope: Any) -> Line:
    """Check one envelope. Raises UsageError that says which one, and what is wrong with it."""
    at = f"record {number + 1}"
    if not isinstance(envelope, dict) or set(envelope) != _ENVELOPE:
        raise UsageError(f"{at} is no envelope", hint=f"an object with {', '.join(sorted(_ENVELOPE))}")
    id, kind, payload = envelope["agent_record_id"], envelope["request_type"], envelope["payload"]
    if not isinstance(id, str) or not id.strip() or len(id) > _ID_MOST or not id.isprintable():
        raise UsageError(f"{at}: agent_record_id {str(id)[:80]!r} is not an id", hint=f"1 to {_ID_MOST} characters")
    if not isinstance(payload, dict):
        raise UsageError(f"{at}: payload is {type(payload).__name__}, not an object")
    if kind == "report":
        return parse_report(payload | {"agent_record_id": id}, whose.scenario)
    if kind != "inference":
        raise UsageError(f"{at}: request_type {str(kind)[:80]!r} cannot be imported", hint="inference or report")
    return _record(whose, id, payload)


def _record(whose: Whose, id: str, payload: dict[str, Any]) -> NewRecord:
    response = payload.get("response")
    name = _dialect(payload, response)
    request = jsontext.encode({key: value for key, value in payload.items() if key != "response"})
    told = jsontext.encode(response) if isinstance(response, dict) else b""
    model = payload.get("model")
    exchange = Exchange(
        receipt=id, scenario=whose.scenario, dialect=name, path=_PATHS[name], started_ns=time.time_ns(), duration_us=0,
        first_byte_us=None, request=request, response=told, stream=False, status=200, end=End.OK, engine=_ENGINE,
        model_asked=model if isinstance(model, str) and model else "unknown", release_id=BASE_RELEASE,
        agent=whose.agent,
    )  # fmt: skip
    return NewRecord(
        jsontext.encode(payload),
        exchange,
        lambda: codec_of(name).transcript(request, told, stream=False, redact=whose.redactor.redact),
    )


def _dialect(payload: dict[str, Any], response: object) -> Dialect:
    """By what only one vendor's bodies have: an envelope does not name its route."""
    told = response if isinstance(response, dict) else {}
    if "output" in told or ("input" in payload and "messages" not in payload):
        return Dialect.RESPONSES
    if "choices" not in told and ("system" in payload or isinstance(told.get("content"), list)):
        return Dialect.MESSAGES
    return Dialect.CHAT
