"""The control plane, writing side: feedback, stopping. Each answer is sent once what it says is on disk."""

import asyncio
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.core.ids import new_id
from daemon.core.rows import NewReport
from daemon.server.control import answer, body, runtime
from daemon.server.identity import scenario_name

_REPORT_FIELDS = {"score", "feedback", "references", "metadata", "agent_record_id"}
_FEEDBACK_MOST = 100_000
_REFERENCES_MOST = 10_000
_DRAIN_MOST = 86_400


async def report(request: Request) -> Response:
    """``POST /reef/report``, the published protocol: a score, text or both, about receipts (none: the last session)."""
    daemon = runtime(request)
    new = parse_report(await body(request), scenario_name(request.headers.get("x-reef-scenario")))
    row, created = await asyncio.wrap_future(daemon.store.report(new))
    if created:
        daemon.changes.reported(row)
    return answer(
        {
            "agent_record_id": row.id,
            "references": row.references,
            "score": row.score,
            "feedback": row.feedback,
            "created": created,
        }
    )


def parse_report(data: dict[str, Any], scenario: str) -> NewReport:
    """Check a report's fields. Raises UsageError naming the field and its value."""
    for name in data.keys() - _REPORT_FIELDS:
        raise UsageError(f"unknown field {name!r}", hint=f"a report has {', '.join(sorted(_REPORT_FIELDS))}")
    score, feedback = data.get("score"), data.get("feedback")
    if score is not None and not _is_finite(score):
        raise UsageError(f"score {score!r} is not a finite number", hint="1 is good, 0 is bad")
    if feedback is not None and not isinstance(feedback, str):
        raise UsageError(f"feedback {feedback!r} is not text")
    if feedback and len(feedback) > _FEEDBACK_MOST:
        raise UsageError(f"feedback has {len(feedback)} characters, the limit is {_FEEDBACK_MOST}")
    edited = _edited(data)
    if score is None and not feedback and not edited:
        raise UsageError(
            "a report needs a score, feedback or both", hint="or metadata.edited: the answer as it should be"
        )
    references = data.get("references") or []
    if not isinstance(references, list) or not all(isinstance(item, str) for item in references):
        raise UsageError(f"references {references!r} is not a list of receipts")
    if len(references) > _REFERENCES_MOST:
        raise UsageError(f"{len(references)} references, the limit is {_REFERENCES_MOST}")
    metadata = data.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UsageError(f"metadata {metadata!r} is not an object")
    given = data.get("agent_record_id")
    if given is not None and (not isinstance(given, str) or not 0 < len(given) <= 128):
        raise UsageError(f"agent_record_id {given!r} is not an id", hint="1 to 128 characters")
    return NewReport(
        id=given or new_id("rep"),
        scenario=scenario,
        score=None if score is None else float(score),
        feedback=feedback or None,
        references=tuple(references),
        metadata=metadata,
    )


def _edited(data: dict[str, Any]) -> str | None:
    """The answer as the person would have had it. Raises UsageError for one that is no text."""
    metadata = data.get("metadata")
    edited = metadata.get("edited") if isinstance(metadata, dict) else None
    if edited is not None and not (isinstance(edited, str) and 0 < len(edited) <= _FEEDBACK_MOST):
        raise UsageError(
            f"metadata.edited {str(edited)[:80]!r} is not an answer", hint=f"text of 1 to {_FEEDBACK_MOST} characters"
        )
    return edited


def _is_finite(score: object) -> bool:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return False
    try:
        return math.isfinite(score)
    except OverflowError:  # an integer of hundreds of digits
        return False


async def undo(request: Request) -> Response:
    daemon = runtime(request)
    data = await body(request)
    receipt = data.get("record")
    if receipt is not None and not isinstance(receipt, str):
        raise UsageError(f"record {receipt!r} is not a receipt")
    named = data.get("report")
    if named is not None and not isinstance(named, str):
        raise UsageError(f"report {named!r} is not a report's id")
    scenario = request.headers.get("x-reef-scenario")
    row = await asyncio.wrap_future(daemon.store.undo(scenario_name(scenario) if scenario else None, receipt, named))
    daemon.changes.reported(row)
    return answer(row)


async def shutdown(request: Request) -> Response:
    """Finish what is in flight, then exit."""
    seconds = (await body(request)).get("drain_seconds")
    if seconds is not None and (
        isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _DRAIN_MOST
    ):
        raise UsageError(f"drain_seconds {seconds!r} is not a number of seconds up to a day")
    runtime(request).stop(seconds)
    return answer({"ok": True})
