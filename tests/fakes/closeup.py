"""The paths of a fake daemon that look at one exchange: its bodies, what changed, and its answer while it comes.

daemon.closeup.bodies["rec_1"] = ('{"model": "m"}', "data: [DONE]")
daemon.closeup.call(live_call("rec_9", session))
daemon.closeup.say("rec_9", "text", "it is ")
daemon.closeup.end("rec_9")
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


def live_call(receipt: str, session: str | None, **changes: Any) -> dict[str, Any]:
    return {
        "receipt": receipt, "session": session, "scenario": "default", "agent": "pi", "model": "smollm2",
        "started_ns": 1_769_860_790_000_000_000, "chars": 0, **changes,
    }  # fmt: skip


class CloseUp:
    """``run`` calls something on the daemon's loop; ``emit`` sends an event."""

    def __init__(self, run: Callable[[Callable[[], None]], None], emit: Callable[[str, object], None]) -> None:
        self.bodies: dict[str, tuple[str, str]] = {}
        self.records: dict[str, dict[str, Any]] = {}
        self.changes: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        self._said: dict[str, list[tuple[str, object]]] = {}
        self._more: list[asyncio.Event] = []
        self._run = run
        self._emit = emit

    def routes(self) -> list[Route]:
        return [
            Route("/reef/live", self._list),
            Route("/reef/live/{receipt}", self._watch),
            Route("/reef/records/{receipt}", self._one(lambda receipt: self.records.get(receipt))),
            Route("/reef/records/{receipt}/changes", self._one(lambda receipt: self.changes.get(receipt))),
            Route("/reef/records/{receipt}/{side}", self._body),
        ]

    def call(self, call: dict[str, Any], *, told: bool = True) -> None:
        """A call begins."""
        self.calls[call["receipt"]] = call
        self._said[call["receipt"]] = []
        if told:
            self._emit("live", call)

    def say(self, receipt: str, kind: str, text: str) -> None:
        self._put(receipt, ("text", {"kind": kind, "text": text}))

    def end(self, receipt: str) -> None:
        self.calls.pop(receipt, None)
        self._put(receipt, ("end", {"end": "ok"}))

    def hang_up(self) -> None:
        for receipt in list(self._said):
            self._said[receipt].append(("", None))
        self._wake()

    def _put(self, receipt: str, event: tuple[str, object]) -> None:
        def put() -> None:
            self._said[receipt].append(event)
            self._wake()

        self._run(put)

    def _wake(self) -> None:
        for more in self._more:
            more.set()

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"items": list(self.calls.values())})

    async def _watch(self, request: Request) -> Response:
        said = self._said.get(request.path_params["receipt"])
        if said is None:
            return _missing(request)
        return StreamingResponse(self._stream(said), media_type="text/event-stream")

    async def _stream(self, said: list[tuple[str, object]]) -> AsyncIterator[bytes]:
        more = asyncio.Event()
        self._more.append(more)
        n = 0
        try:
            yield b": reef\n\n"
            while True:
                more.clear()
                for name, data in said[n:]:
                    if not name:
                        return
                    yield f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
                    if name == "end":
                        return
                    n += 1
                await more.wait()
        finally:
            self._more.remove(more)

    async def _body(self, request: Request) -> Response:
        found = self.bodies.get(request.path_params["receipt"])
        if found is None:
            return _missing(request)
        return Response(found[request.path_params["side"] == "response"], media_type="application/octet-stream")

    def _one(self, find: Callable[[str], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            found = find(request.path_params["receipt"])
            return JSONResponse(found) if found else _missing(request)

        return answer


def _missing(request: Request) -> Response:
    message = f"no {request.method} {request.url.path} here"
    return JSONResponse({"error": {"kind": "not_found", "message": message, "hint": "GET /reef/status"}}, 404)
