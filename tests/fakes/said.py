"""The paths of a fake daemon that take feedback: reports on its records, taken back again, and pins.

daemon.said.on["rec_1"]     # the reports on it, a list that grows: also what a trace's entry can hold
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Rows = Callable[[], list[dict[str, Any]]]


class Said:
    """``records`` are all records that a report can be about, ``sessions`` what can be pinned."""

    def __init__(self, records: Rows, sessions: Rows, emit: Callable[[str, object], None]) -> None:
        self.on: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._records = records
        self._sessions = sessions
        self._emit = emit

    def routes(self) -> list[Route]:
        return [
            Route("/reef/records", self._list),
            Route("/reef/report", self._report, methods=["POST"]),
            Route("/reef/undo", self._undo, methods=["POST"]),
            Route("/reef/pin", self._pin, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        session = request.query_params["session"]
        found = [one for one in self._records() if one["session"] == session]
        return JSONResponse({"items": found[::-1], "next": None})

    async def _report(self, request: Request) -> Response:
        body = await request.json()
        made = {"score": None, "feedback": None, "metadata": None, "undone_ns": None, **body}
        for receipt in body["references"]:
            self.on[receipt].append({**made, "id": body["agent_record_id"]})
        self._told(body["references"])
        return JSONResponse({"agent_record_id": body["agent_record_id"]})

    async def _undo(self, request: Request) -> Response:
        body = await request.json()
        found = next(one for said in self.on.values() for one in said if one["id"] == body["report"])
        found["undone_ns"] = 1
        self._told(found["references"])
        return JSONResponse(found)

    def _told(self, receipts: list[str]) -> None:
        """As the daemon's list does, a session has the last score that stands on one of its records."""
        for session in self._sessions():
            receipts_of = [one["receipt"] for one in self._records() if one["session"] == session["id"]]
            said = [one for receipt in receipts_of for one in self.on[receipt] if not one["undone_ns"]]
            session["reports"] = len(said)
            session["score"] = next((one["score"] for one in reversed(said) if one["score"] is not None), None)
        self._emit("report", {"references": receipts})

    async def _pin(self, request: Request) -> Response:
        body = await request.json()
        changed = [one for one in self._sessions() if one["id"] in body["sessions"] and one["pinned"] != body["pinned"]]
        for one in changed:
            one["pinned"] = body["pinned"]
        self._emit("pin", {"sessions": body["sessions"]})
        return JSONResponse({"changed": [one["id"] for one in changed]})
