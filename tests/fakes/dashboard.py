"""Stands in for the daemon's control socket where a test needs rows by the thousand, releases and jobs on demand, or a
daemon that goes away: the same paths, shapes, cursors and events, on a Unix socket.

    with FakeDaemon(home.socket).running() as daemon:
        daemon.sessions = [session(n) for n in range(100)]      # the oldest first
        daemon.emit("job", job(...))
        daemon.requests                                          # (method, path with query, rows answered)
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.core.version import PROTOCOL, __version__
from tests.fakes.closeup import CloseUp
from tests.fakes.listing import page
from tests.fakes.said import Said

ENGINES: list[dict[str, Any]] = [
    {
        "name": "embedded", "kind": "embedded", "state": "ready", "model": "smollm2", "detail": None, "progress": None,
        "memory_mb": 512, "running": 1, "waiting": 0, "restarts": 0, "prompt_speed": 900.0,
        "prompt_tokens": 1000, "cached_tokens": 600, "completion_tokens": 200, "loras": 1, "tokens_per_second": 45.3,
        "cache_hit": 0.62, "weights": "a1b2c3d4e5f6+0badf00d0000",
    }
]  # fmt: skip


class FakeDaemon:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions: list[dict[str, Any]] = []
        self.beside: dict[
            str, list[dict[str, Any]]
        ] = {}  # of a session, the records beside its main line, newest first
        self.looked_at = 10**9  # sessions, for a page of those that fit
        self.traces: dict[str, dict[str, Any]] = {}
        self.releases: list[dict[str, Any]] | None = []
        self.jobs: list[dict[str, Any]] | None = []
        self.held: str | None = None  # a release
        self.models: list[dict[str, Any]] = []
        self.adding: list[dict[str, Any]] = []
        self.status = status()
        self.told = 0  # events, for one who listens
        self.requests: list[tuple[str, str, int]] = []
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.closeup = CloseUp(self._soon, self.emit)
        self.said = Said(self._records, lambda: self.sessions, self.emit)
        self._clients: set[asyncio.Queue[bytes | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    # -- life ---------------------------------------------------------------------------------------

    def start(self) -> None:
        ready = threading.Event()

        async def serve() -> None:
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            config = uvicorn.Config(self._app(), uds=str(self.path), log_level="critical", lifespan="off")
            server = uvicorn.Server(config)
            task = asyncio.create_task(server.serve())
            while not server.started and not task.done():
                await asyncio.sleep(0.005)
            ready.set()
            await self._end.wait()
            await self._close(server)
            task.cancel()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()))
        self._thread.start()
        assert ready.wait(120)

    async def _close(self, server: uvicorn.Server) -> None:
        """What uvicorn does at its end, which looks ten times a second whether it should."""
        self.closeup.hang_up()
        self._send(None)
        for listening in server.servers:
            for one in listening.sockets:
                asyncio.get_running_loop().remove_reader(one.fileno())
            await asyncio.sleep(0.001)  # Python 3.11 never closes what was taken just before a server is closed
            listening.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        while server.server_state.connections or server.server_state.tasks:
            await asyncio.sleep(0.001)

    def stop(self) -> None:
        """As a daemon that ends: streams break off, nobody listens any more."""
        assert self._loop is not None
        assert self._end is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)
        self.path.unlink(missing_ok=True)

    @contextmanager
    def running(self) -> Iterator["FakeDaemon"]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    # -- what tests do ------------------------------------------------------------------------------

    def emit(self, name: str, data: object) -> None:
        """One event to every client that listens."""
        assert self._loop is not None
        line = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
        self.told += 1
        self._loop.call_soon_threadsafe(self._send, line)

    def record(self, session: dict[str, Any]) -> None:
        """A record of ``session`` came: it moves to the end of the list, or appears there."""
        newest = self.sessions[-1]["seq"] if self.sessions else 0
        self.sessions = [one for one in self.sessions if one["id"] != session["id"]]
        self.sessions.append({**session, "seq": newest + 1})
        self.emit("record", {"session": session["id"], "receipt": f"rec_{newest + 1}"})

    # -- routes -------------------------------------------------------------------------------------

    def _app(self) -> Starlette:
        routes = [
            Route("/reef/events", self._events),
            Route("/reef/sessions", self._session_list),
            Route("/reef/search", self._beside),
            Route("/reef/status", self._one(lambda request: self.status)),
            Route("/reef/traces/{id}", self._one(self._trace)),
            *self.said.routes(),
            *self.closeup.routes(),
            Route("/reef/scenarios", self._scenarios),
            Route("/reef/releases", self._release_list),
            Route("/reef/releases/rollback", self._roll_back, methods=["POST"]),
            Route("/reef/releases/pin", self._hold, methods=["POST"]),
            Route("/reef/releases/unpin", self._let_go, methods=["POST"]),
            Route("/reef/releases/{id}", self._one(self._release)),
            Route("/reef/releases/{id}/card", self._one(self._release)),
            Route("/reef/releases/{id}/blame", self._one(self._blame)),
            Route(
                "/reef/releases/{id}/diff", self._one(lambda request: {"diff": self._release(request).get("diff", "")})
            ),
            Route("/reef/releases/{id}/{verb}", self._decide, methods=["POST"]),
            Route("/reef/models", self._model_list),
            Route("/reef/models/use", self._use, methods=["POST"]),
            *(Route(f"/reef/{verb}", self._record, methods=["POST"]) for verb in ("pause", "resume")),
            Route("/reef/jobs", self._job_list),
            Route("/reef/jobs/{id}", self._one(self._job)),
            Route("/reef/jobs/{id}/cancel", self._cancel, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _soon(self, work: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(work)

    def _send(self, line: bytes | None) -> None:
        for client in self._clients:
            client.put_nowait(line)

    async def _events(self, request: Request) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            client: asyncio.Queue[bytes | None] = asyncio.Queue()
            self._clients.add(client)
            self.told += 1
            try:
                yield f"event: engine\ndata: {json.dumps(ENGINES)}\n\n".encode()
                while (line := await client.get()) is not None:
                    yield line
            finally:
                self._clients.discard(client)

        self._note(request, 0)
        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _session_list(self, request: Request) -> Response:
        query = request.query_params
        if query.get("q", "").startswith("colour:"):
            error = {"kind": "usage", "message": "no field 'colour'", "hint": "there are agent, model"}
            return JSONResponse({"error": error}, 400)
        told = page(self.sessions, query, self.looked_at)
        self._note(request, len(told["items"]))
        return JSONResponse(told)

    async def _beside(self, request: Request) -> Response:
        """``session:ses_… -kind:main``"""
        session = request.query_params["q"].split()[0].removeprefix("session:")
        found = self.beside.get(session, [])[: int(request.query_params["limit"])]
        self._note(request, len(found))
        return JSONResponse(
            {"items": [{"record": one, "snippet": None, "score": one.get("score")} for one in found], "next": None}
        )

    def _one(self, find: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            found = find(request)
            self._note(request, 1)
            return JSONResponse(found) if found else _missing(request)

        return answer

    def _trace(self, request: Request) -> dict[str, Any] | None:
        """A page of it, as the daemon cuts one."""
        trace, query = self.traces.get(request.path_params["id"]), request.query_params
        if trace is None:
            return None
        limit, seqs = int(query.get("limit", 50)), [entry["record"]["seq"] for entry in trace["records"]]
        if "after" in query:
            first = sum(seq <= int(query["after"]) for seq in seqs)
            last = first + limit
        else:
            last = sum("before" not in query or seq < int(query["before"]) for seq in seqs)
            first = max(last - limit, 0)
        records = trace["records"][first:last]
        before = str(seqs[first]) if records and first > 0 else None
        after = str(seqs[last - 1]) if records and last < len(seqs) else None
        return {**trace, "records": records, "before": before, "after": after}

    def _records(self) -> list[dict[str, Any]]:
        return [entry["record"] for trace in self.traces.values() for entry in trace["records"]]

    async def _scenarios(self, request: Request) -> Response:
        if self.releases is None:
            return _missing(request)
        names = sorted({str(release["scenario"]) for release in self.releases} | {"default"})
        return JSONResponse({"items": [{"name": name} for name in names], "next": None})

    async def _release_list(self, request: Request) -> Response:
        if self.releases is None:
            return _missing(request)
        found = [one for one in self.releases if one["scenario"] == request.query_params.get("scenario", "default")]
        self._note(request, len(found))
        return JSONResponse({"items": found[::-1], "next": None, "pinned": self.held})

    async def _job_list(self, request: Request) -> Response:
        if self.jobs is None:
            return _missing(request)
        self._note(request, len(self.jobs))
        return JSONResponse({"items": self.jobs[::-1], "next": None})

    def _release(self, request: Request) -> dict[str, Any]:
        found = next((one for one in self.releases or [] if one["id"] == request.path_params["id"]), None)
        return {} if found is None else {**found, "pinned": found["id"] == self.held}

    def _job(self, request: Request) -> dict[str, Any]:
        return next(one for one in self.jobs or [] if one["id"] == request.path_params["id"])

    async def _decide(self, request: Request) -> Response:
        name, verb = request.path_params["id"], request.path_params["verb"]
        release = next(one for one in self.releases or [] if one["id"] == name)
        body = await self._posted(request)
        if verb == "approve" and release["state"] == "rejected" and not body.get("force"):
            error = {"kind": "gate_refused", "message": "the gate refused it", "hint": "--force"}
            return JSONResponse({"error": error}, 409)
        release["state"] = "released" if verb == "approve" else "rejected"
        if verb == "approve":  # it joins the chain: its number is in its id
            release["id"] = release["id"].replace("r0-", "r8-")
            release["card"] = release["card"].replace("waits", "serves")
        self.emit("release", release)
        return JSONResponse(release)

    async def _roll_back(self, request: Request) -> Response:
        body = await self._posted(request)
        assert self.releases is not None
        for release in self.releases:
            release["head"] = False
        made = {**self.releases[0], "id": "r9-99999999", "kind": "rollback", "state": "released", "head": True}
        self.releases.append({**made, "restores": body["to"], "created_ns": 10**19, "reason": "rolled back"})
        self.emit("release", self.releases[-1])
        return JSONResponse(self.releases[-1])

    def _blame(self, request: Request) -> dict[str, Any]:
        first, last = (self.releases or [])[0], self._release(request)
        lines = [{"text": "a rule", "release": first["id"]}, {"text": "another rule", "release": last["id"]}]
        path = request.query_params["path"]
        return {"path": path, "lines": lines, "releases": {one["id"]: one for one in (first, last)}}

    async def _hold(self, request: Request) -> Response:
        self.held = (await self._posted(request))["release"]
        release = next(one for one in self.releases or [] if one["id"] == self.held)
        self.emit("release_pin", release)
        return JSONResponse(release)

    async def _let_go(self, request: Request) -> Response:
        await self._posted(request)
        self.held = None
        release = next(one for one in self.releases or [] if one["head"])
        self.emit("release_unpin", release)
        return JSONResponse(release)

    async def _cancel(self, request: Request) -> Response:
        job = self._job(request)
        await self._posted(request)
        job["state"] = "cancelled"
        self.emit("job", job)
        return JSONResponse(job)

    async def _model_list(self, request: Request) -> Response:
        self._note(request, len(self.models))
        return JSONResponse({"items": self.models, "routes": [], "adding": self.adding})

    async def _use(self, request: Request) -> Response:
        name = (await self._posted(request))["name"]
        for one in self.models:
            one["active"] = one["name"] == name
        self.emit("model", {"name": name})
        return JSONResponse(next(one for one in self.models if one["active"]))

    async def _record(self, request: Request) -> Response:
        await self._posted(request)
        recording = self.status["recording"]
        recording["state"] = "paused" if request.url.path.endswith("pause") else "on"
        self.emit("recording", recording)
        return JSONResponse(recording)

    async def _posted(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.posts.append((request.url.path, body))
        return body

    def _note(self, request: Request, rows: int) -> None:
        query = f"?{request.url.query}" if request.url.query else ""
        self.requests.append((request.method, request.url.path + query, rows))


def _missing(request: Request) -> Response:
    message = f"no {request.method} {request.url.path} here"
    return JSONResponse({"error": {"kind": "not_found", "message": message, "hint": "GET /reef/status"}}, 404)


# -- rows -------------------------------------------------------------------------------------------

#: 2026-01-31 12:00:00 UTC: what the dashboard of a test calls now.
NOW = 1_769_860_800_000_000_000
_MINUTE = 60 * 10**9


def session(n: int, **changes: Any) -> dict[str, Any]:
    """A session whose place in the list is ``n`` (from 1)."""
    return {
        "id": f"ses_{n:026d}", "scenario": "default", "agent": "pi", "title": f"what was asked in session {n}",
        "created_ns": NOW - _MINUTE, "updated_ns": NOW - _MINUTE, "turns": 1, "records": 1, "prompt_tokens": 100,
        "completion_tokens": 20, "parent": None, "cwd": None, "score": None, "reports": 0, "seq": n, "cost_usd": None,
        "duration_us": 1_500_000, "subagents": 0, "side": 0, "retries": 0, "status": "ok", "release_id": "r3-0badcafe",
        "pinned": False,
        **changes,
    }  # fmt: skip


def record(receipt: str, session: str, **changes: Any) -> dict[str, Any]:
    return {
        "seq": 1, "receipt": receipt, "session": session, "scenario": "default", "kind": "main", "dialect": "chat",
        "end": "ok", "status": 200, "stream": True, "started_ns": NOW - _MINUTE, "duration_us": 1_234_567,
        "first_byte_us": 1000, "engine": "embedded", "model_asked": "default", "model": "smollm2",
        "release_id": "r3-0badcafe", "weights": "a1b2c3d4e5f6+0badf00d0000", "agent": "pi", "prompt_tokens": 100,
        "cached_tokens": 60, "completion_tokens": 20, "stop_reason": "stop", "error": None, "preview": "",
        "messages": 2, "redacted": 0, "parent": None, **changes,
    }  # fmt: skip


def said(role: str, *parts: Mapping[str, Any] | str) -> dict[str, Any]:
    """A message; a string is a text part."""
    made = [{"type": "text", "text": part} if isinstance(part, str) else dict(part) for part in parts]
    return {"role": role, "parts": made}


def release(number: int, /, **changes: Any) -> dict[str, Any]:
    gate = {"verdict": "accept", "reason": "9 wins, 1 loss of 40 pairs", "alpha": 0.05, "wins": 9, "losses": 1}
    chained = changes.get("state", "released") == "released"
    return {
        "id": f"r{number if chained else 0}-{number:08x}", "scenario": "default", "number": number if chained else 0,
        "kind": "learned", "parent": "base",
        "created_ns": NOW - (10 - number) * _MINUTE, "reason": f"answers in one sentence ({number})", "recipe": "sft",
        "job": f"job_{number}", "gate": gate, "state": "released", "head": False, "restores": None,
        "note": "", "acts": None, "said": [],
        "card": f"Release r{number} {'serves' if chained else 'waits'}\nverdict  accept\n9 wins · 1 loss · 30 ties",
        "diff": "--- a/playbook.md\n+++ b/playbook.md\n@@ -1 +1,2 @@\n a rule\n+another rule", **changes,
    }  # fmt: skip


def job(number: int, /, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"job_{number}", "scenario": "default", "recipe": "sft", "state": "queued", "created_ns": NOW - _MINUTE,
        "config": {}, "started_ns": None, "ended_ns": None, "attempts": 1, "progress": None, "message": "",
        "outcome": None, "release_id": None, "error": None, "records": 0, "instructions": [],
        "log": ["select: 36 records", "train: step 1"], "directory": "/home/me/.reef/jobs/x", **changes,
    }  # fmt: skip


def model(name: str, /, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "path": f"/home/me/.reef/models/{name}.gguf", "bytes": 145_000_000, "sha256": f"{len(name):064x}",
        "licence": "apache-2.0", "source": f"pypi:{name}", "active": False, "loaded": False, **changes,
    }  # fmt: skip


def status(**changes: Any) -> dict[str, Any]:
    """What ``/reef/status`` tells; the daemon of a test started an hour before `NOW`."""
    return {
        "version": __version__, "protocol": PROTOCOL, "pid": 4711, "started_ns": NOW - 60 * _MINUTE, "uptime_s": 3600.0,
        "home": "/home/me/.reef", "url": "http://127.0.0.1:4141", "port": 4141, "config_path": None,
        "recording": {"state": "on", "detail": None, "unrecorded": 0, "until_ns": None}, "engines": ENGINES,
        "default_engine": "embedded", "model": "smollm2", "counts": {"records": 12, "sessions": 3, "reports": 2},
        "last": None, "releases": [], "waiting": [], "waiting_in": [], "jobs": [], "notes": [],
        "log": "/home/me/.reef/logs/daemon.log", **changes,
    }  # fmt: skip
