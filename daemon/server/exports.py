"""Traces for other programs: ``GET /reef/export``, JSON lines, whole sessions, the newest first.

``records`` are envelopes that ``POST /reef/records/batch`` takes back, each session's oldest first and what was
reported on it behind them. ``openai`` and ``atif`` are a line a session: its main line as it stood at its last answer.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, get_args

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon.core import interchange
from daemon.core.errors import UsageError
from daemon.core.records import Dialect, End, Kind, Message, StoredMessage
from daemon.core.rows import RecordRow, SessionRow
from daemon.server.control import page_limit, read, runtime
from daemon.server.search import asked, cursor
from daemon.store import inband
from daemon.store.db import Store
from daemon.store.query import Query
from daemon.wire import jsontext
from daemon.wire.base import dialect as codec_of

NEXT: Final = "x-reef-next"
_PAGE: Final = 500


async def export(request: Request) -> Response:
    """``?form=records|openai|atif&q=``: all that the query finds; with ``limit`` and ``before`` a page of so many
    sessions, and the cursor of the next one in a header.
    """
    form = request.query_params.get("form", "records")
    if form not in get_args(interchange.Form):
        raise UsageError(f"form={form[:40]!r} is none", hint=f"one of {', '.join(get_args(interchange.Form))}")
    store, query, whole = runtime(request).store, asked(request), "limit" not in request.query_params
    limit = _PAGE if whole else page_limit(request)
    found, following = await read(_page, store, query, limit, cursor(request))
    rest = _following(store, query, following) if whole else iter(())
    lines = (
        jsontext.encode(line) + b"\n"
        for session in chain(found, rest)
        for line in (_envelopes(store, session) if form == "records" else _session(store, session, form))
    )
    headers = {NEXT: following} if following and not whole else {}
    # Read while they are sent, off the event loop.
    return StreamingResponse(lines, media_type="application/jsonl", headers=headers)


def _page(store: Store, query: Query, limit: int, before: str | None) -> tuple[list[SessionRow], str | None]:
    if query.is_empty:
        return store.sessions(limit=limit, before=before)
    return store.sessions_with(query, limit=limit, before=before)


def _following(store: Store, query: Query, before: str | None) -> Iterator[SessionRow]:
    while before is not None:
        found, before = _page(store, query, _PAGE, before)
        yield from found


def _envelopes(store: Store, session: SessionRow) -> Iterator[dict[str, Any]]:
    receipts: list[str] = []
    for row in _records(store, session):
        receipts.append(row.receipt)
        yield envelope(store, row)
    reports = {one.id: one for said in store.reports_on(receipts).values() for one in said if one.undone_ns is None}
    for report in reports.values():
        here = [receipt for receipt in report.references if receipt in receipts]
        payload: dict[str, Any] = {"references": here, "score": report.score, "feedback": report.feedback}
        payload |= {"metadata": dict(report.metadata)} if report.metadata else {}
        said = {name: value for name, value in payload.items() if value is not None}
        yield {"agent_record_id": report.id, "request_type": "report", "payload": said}


def envelope(store: Store, row: RecordRow) -> dict[str, Any]:
    """A record as the published protocol has it."""
    request = _json(store.request(row.receipt))
    payload = request if isinstance(request, dict) else {"request": request}
    stored = store.answer(row.receipt)
    if stored is not None:
        payload["response"] = _response(row, stored)
    return {"agent_record_id": row.receipt, "request_type": "inference", "payload": payload}


def _response(row: RecordRow, stored: StoredMessage) -> dict[str, Any]:
    """The answer in its dialect's whole form, whether or not it was streamed."""
    if row.dialect is Dialect.RESPONSES:  # its items, one after the other
        return {"id": row.receipt, "model": row.model, "status": "completed", "output": _json(b"[%s]" % stored.raw)}
    message = _json(stored.raw)
    if row.dialect is Dialect.CHAT:
        choices = [{"index": 0, "message": message, "finish_reason": row.stop_reason}]
        return {"id": row.receipt, "model": row.model, "choices": choices}
    if row.dialect is Dialect.MESSAGES and isinstance(message, dict):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return {
            "id": row.receipt, "type": "message", "role": "assistant", "model": row.model, "content": blocks,
            "stop_reason": row.stop_reason,
        }  # fmt: skip
    return {"id": row.receipt, "model": row.model, "content": message}


def _session(store: Store, session: SessionRow, form: str) -> Iterator[dict[str, Any]]:
    said = list(_said(store, session))
    if said and form == "atif":
        yield interchange.atif(session, said)
    elif said:
        yield {"messages": interchange.openai([message for message, _ in said])}


def _said(store: Store, session: SessionRow) -> Iterator[tuple[Message, RecordRow | None]]:
    """The main line up to its last answer, answers with their records; without what was said to Reef."""
    turns = (row for row in _records(store, session) if row.kind in (Kind.MAIN, Kind.RETRY))
    line = [row for row in turns if row.end is End.OK]
    if not line:
        return
    last = line[-1]
    answers = {one.key: row for row in line if (one := store.answer(row.receipt)) is not None}
    codec = codec_of(last.dialect)
    said = [(codec.message(one.raw), answers.get(one.key)) for one in store.messages(last.receipt)]
    kept = {id(message) for message in inband.without(message for message, _ in said)}
    yield from (pair for pair in said if id(pair[0]) in kept)
    final = store.answer(last.receipt)
    if final is not None:
        yield codec.message(final.raw), last


def _records(store: Store, session: SessionRow) -> Iterator[RecordRow]:
    """Oldest first."""
    page, _ = store.records(session=session.id, limit=_PAGE, after="0")
    while page:
        yield from page
        page, _ = store.records(session=session.id, limit=_PAGE, after=str(page[-1].seq))


def _json(raw: bytes) -> Any:
    try:
        return jsontext.decode(raw)
    except jsontext.NotJson:
        return raw.decode("utf-8", "replace")
