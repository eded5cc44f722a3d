"""Inference routes that answer from what the daemon knows: the model list and token counts."""

import asyncio
import time
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import BadRequest, NotFound, ReefError
from daemon.core.records import Dialect
from daemon.engines.base import Headers, RelayEngine, RelayRequest
from daemon.server.control import answer, runtime
from daemon.server.identity import scenario_name
from daemon.server.incoming import ClientGone, plain, read_body, until_gone
from daemon.server.relaying import head_of, worded
from daemon.wire import estimate
from daemon.wire.base import dialect as codec_of
from daemon.wire.rename import renamed
from daemon.wire.seal import foreign

#: Where what a request would read is counted, and of which dialect.
COUNTS: Final = {"/v1/messages/count_tokens": Dialect.MESSAGES, "/v1/responses/input_tokens": Dialect.RESPONSES}
#: How providers that speak a dialect but do not count say so.
_CANNOT: Final = (404, 405, 501)


def _entry(name: str) -> dict[str, object]:
    # One entry serves both vendors' clients: each reads its own fields.
    now = int(time.time())
    return {
        "id": name,
        "object": "model",
        "created": now,
        "owned_by": "reef",
        "type": "model",
        "display_name": name,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
    }


async def models(request: Request) -> Response:
    names = runtime(request).router.model_names()
    listed: dict[str, object] = {
        "object": "list",
        "data": [_entry(name) for name in names],
        "has_more": False,
        "first_id": names[0],
        "last_id": names[-1],
    }
    if "client_version" in request.query_params:
        # Codex reads this field alone: models that come with a system prompt of theirs, of which there are none here.
        listed["models"] = []
    return answer(listed)


async def model(request: Request) -> Response:
    name = request.path_params["model"]
    if name not in runtime(request).router.model_names():
        raise NotFound(f"no model is called {name!r}", hint="GET /v1/models")
    return answer(_entry(name))


async def count_tokens(request: Request) -> Response:
    """The routes of `COUNTS`: exact where the engine is ours, the provider's own answer where it has one, else an
    estimate.
    """
    dialect = COUNTS[request.url.path]
    try:
        most = runtime(request).config.server.max_body_mb << 20
        raw = await read_body(request.scope, request.receive, most)
        body = await plain(raw, request.headers.get("content-encoding", ""), most)
        counted = await until_gone(_counted(request, dialect, raw, body), request.scope)
    except ClientGone:
        counted = None
    except ReefError as error:
        said = codec_of(dialect).error(error.status, error.kind, worded(error))
        refused = Response(said, error.status, media_type="application/json")
        refused.raw_headers += head_of(error)
        return refused
    return Response() if counted is None else counted  # nobody is there to read it


async def _counted(request: Request, dialect: Dialect, raw: bytes, body: bytes) -> Response:
    """``body``: what ``raw`` says, uncompressed."""
    codec = codec_of(dialect)
    served = runtime(request).heads.served(scenario_name(request.headers.get("x-reef-scenario")))
    target = runtime(request).router.choose(codec.peek(body).model, dialect, served.routing)
    if isinstance(target.engine, RelayEngine) and dialect in target.engine.dialects and not foreign(dialect, body):
        headers = list(request.headers.raw)
        if target.model is not None:
            raw = renamed(body, target.model)
            headers = [(name, value) for name, value in headers if name != b"content-encoding"]
        counted = await _relayed(target.engine, request, headers, raw)
        if counted.status_code not in _CANNOT:
            return counted
    if dialect is Dialect.RESPONSES:
        scenario = scenario_name(request.headers.get("x-reef-scenario"))
        body = await runtime(request).recorder.conversation(scenario, body)
    if isinstance(target.engine, RelayEngine):
        return _count(dialect, await asyncio.to_thread(_estimate, dialect, body))
    return _count(dialect, await target.engine.count(codec.parse(body)))


def _count(dialect: Dialect, tokens: int) -> Response:
    kind = {"object": "response.input_tokens"} if dialect is Dialect.RESPONSES else {}
    return answer({**kind, "input_tokens": tokens})


def _estimate(dialect: Dialect, body: bytes) -> int:
    try:
        return estimate.tokens(codec_of(dialect).parse(body))
    except BadRequest:  # something in it that only its vendor reads: its text at least
        return round(estimate.text_tokens(body.decode("utf-8", "replace")))


async def _relayed(engine: RelayEngine, request: Request, headers: Headers, raw: bytes) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    path = request.url.path.removeprefix("/v1")
    upstream = await engine.relay(RelayRequest("POST", f"{path}{query}", headers, raw))
    try:
        data = b"".join([chunk async for chunk in upstream.chunks()])
    finally:
        await upstream.close()
    response = Response(data, upstream.status)
    response.raw_headers = [*upstream.headers]
    return response
