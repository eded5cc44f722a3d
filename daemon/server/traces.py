"""A session as a person reads it, page by page, and what changed from one request to the next.

A page is bounded in records and in bytes: a session may hold ten thousand records and forty megabytes. An image is
named with its size, and never sent.
"""

from dataclasses import asdict
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.records import Image, Message, StoredMessage, Text, Thinking, ToolResult, ToolUse
from daemon.core.rows import RecordRow
from daemon.server.comparing import changed
from daemon.server.control import answer, page_limit, read, runtime
from daemon.server.runtime import Runtime
from daemon.store.person import written
from daemon.wire.base import dialect as codec_of

#: Of messages, on a page of more than one record: what paints at once.
_PAGE_BYTES: Final = 1 << 20
#: For providers, not for people; an image's bytes are megabytes.
_UNSHOWN: Final = frozenset({"seal", "url", "images"})
_PART_TYPES: Final = {
    Text: "text",
    Thinking: "thinking",
    Image: "image",
    ToolUse: "tool_use",
    ToolResult: "tool_result",
}


async def trace(request: Request) -> Response:
    """``?limit=&before=&after=``: a page of a session's records, the oldest first; without a cursor the newest page.

    Each record with the messages it added, its answer and what was said about it. ``before`` and ``after`` are the
    cursors of the pages around it, null where there is none.
    """
    query = request.query_params
    name, limit = request.path_params["id"], page_limit(request)
    return answer(
        await read(_trace, runtime(request), name, limit, before=query.get("before"), after=query.get("after"))
    )


async def changes(request: Request) -> Response:
    """What a request has that the one before it in its line had not, or where its beginning is another."""
    store = runtime(request).store
    receipt = request.path_params["receipt"]
    found = await read(store.compared, receipt)
    return answer(await read(changed, receipt, found))


def _trace(daemon: Runtime, name: str, limit: int, *, before: str | None, after: str | None) -> dict[str, object]:
    store = daemon.store
    session = store.session(name if name.startswith("ses_") else store.record(name).session)
    rows, cursor = store.records(session=session.id, limit=limit, before=before, after=after)
    entries: list[tuple[RecordRow, dict[str, object]]] = []
    left = _PAGE_BYTES
    for row in rows:
        entry, size = _entry(daemon, row)
        if entries and size > left:
            cursor = str(entries[-1][0].seq)
            break
        entries.append((row, entry))
        left -= size
    if after is None:
        entries.reverse()
    shown = [row for row, _ in entries]
    reports = store.reports_on([row.receipt for row in shown])
    signals = store.signals_on([row.seq for row in shown])
    first, last = (str(shown[0].seq), str(shown[-1].seq)) if shown else (after, before)
    newest = store.place(shown[-1].seq) if shown else None
    return {
        "session": asdict(session)
        | ({"commit": newest.commit, "dirty": newest.dirty} if newest else {"commit": None, "dirty": None}),
        "records": [
            {"record": row, **entry, "reports": reports.get(row.receipt, []), "signals": signals.get(row.seq, [])}
            for row, entry in entries
        ],
        "before": cursor if after is None else first if after != "0" else None,
        "after": cursor if after is not None else last if before is not None else None,
    }


def _entry(daemon: Runtime, row: RecordRow) -> tuple[dict[str, object], int]:
    """What a record added, and how many bytes that was."""
    added, said = daemon.store.new_messages(row.receipt), daemon.store.answer(row.receipt)
    size = sum(len(message.raw) for message in added) + (len(said.raw) if said else 0)
    return {"new_messages": _added(row, added), "answer": _readable(row, said) if said else None}, size


def _added(row: RecordRow, added: list[StoredMessage]) -> list[dict[str, object]]:
    """What a request brought; ``earlier`` is what stands up to an answer that came along: examples of the agent's, or
    what was said before Reef was there. Nobody typed it now."""
    answered = max((n for n, message in enumerate(added) if message.role == "assistant"), default=-1)
    return [
        _readable(row, message) | ({"earlier": True} if n <= answered and message.role != "system" else {})
        for n, message in enumerate(added)
    ]


def _readable(row: RecordRow, stored: StoredMessage) -> dict[str, object]:
    """A message by its parts; ``written`` is what a person wrote of a user's text, where an agent added to it."""
    message: Message = codec_of(row.dialect).message(stored.raw)
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        shown = {name: value for name, value in asdict(part).items() if name not in _UNSHOWN}
        if message.role == "user" and isinstance(part, Text) and (words := written(part.text)) != part.text:
            shown["written"] = words
        if isinstance(part, Image):
            shown["bytes"] = _bytes(part)
        if isinstance(part, ToolResult) and part.images:
            shown["images"] = [
                {"media_type": image.media_type, "source": image.source, "bytes": _bytes(image)}
                for image in part.images
            ]
        parts.append({"type": _PART_TYPES[type(part)], **shown})
    return {"role": message.role, "parts": parts}


def _bytes(image: Image) -> int | None:
    """Of an image that came inline."""
    if not image.url.startswith("data:"):
        return None
    _, _, data = image.url.partition(",")
    return len(data.rstrip("=")) * 3 // 4
