"""The data plane: one inference request from an agent to an engine and back, recorded.

Pure ASGI on the way of every byte. Three rules: an agent's bytes are not changed; whoever has seen the end of a
response can rely on its record being on disk; a client that leaves stops the work for it.
"""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, cast

from starlette.types import Receive, Scope, Send

from daemon.core.config import ServerConfig
from daemon.core.errors import (
    BadWeights,
    BrokeOff,
    EngineError,
    EngineUnavailable,
    ReefError,
    TooLarge,
)
from daemon.core.records import ChatRequest, Dialect, End
from daemon.core.redact import Redactor
from daemon.engines.base import RelayEngine, RelayRequest, TokenEngine
from daemon.server.checkouts import Checkouts
from daemon.server.checks import Checks
from daemon.server.exchange import Call
from daemon.server.heads import Heads
from daemon.server.identity import identify
from daemon.server.inband import InBand, speaks_of_reef
from daemon.server.incoming import ClientGone, discard, plain, read_body, until_gone
from daemon.server.live import Live
from daemon.server.outgoing import Outgoing
from daemon.server.recorder import Recorder
from daemon.server.relaying import breaks, head_of, pass_on, refuse, worded
from daemon.server.rendering import Answer, render
from daemon.server.routing import Router, Target, another_may_answer
from daemon.server.translation import Translation, spoken
from daemon.wire.rename import renamed
from daemon.wire.seal import foreign

_log = logging.getLogger("reef.proxy")

#: Path below ``/v1`` for each dialect; the base URL of a provider stands in for ``/v1``.
ROUTES: Final = {
    "/v1/chat/completions": Dialect.CHAT,
    "/v1/messages": Dialect.MESSAGES,
    "/v1/responses": Dialect.RESPONSES,
}


def passes(method: str, path: str) -> bool:
    """Whether a request below ``/v1`` is a provider's business, as far as the pages of our own leave it over."""
    if path in ROUTES:
        return method == "POST"
    dots = {".", ".."} & set(path.replace("\\", "/").split("/"))
    return path.startswith("/v1/") and method not in ("HEAD", "OPTIONS") and not dots


@dataclass(frozen=True, slots=True)
class DataPlane:
    """Answers ``POST`` on the inference routes, and passes on what is no inference."""

    router: Router
    recorder: Recorder
    redactor: Redactor
    heads: Heads
    checks: Checks
    checkouts: Checkouts
    inband: InBand
    live: Live
    server: ServerConfig

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        dialect = ROUTES.get(scope["path"], Dialect.OTHER)
        call = Call(dialect, scope, self.redactor)
        outgoing = Outgoing(call, send)
        try:
            call.identity = identify(call.headers)
            # Nothing is done by what only reads.
            reads = "read" if scope["method"] == "GET" else None
            call.unrecorded = reads or await self.recorder.unrecorded(call.identity.cwd)
            call.served = self.heads.served(call.identity.scenario)
            call.request = await read_body(scope, receive, self.server.max_body_mb << 20)
            self.checks.arrived(call.identity)
            if call.unrecorded is None:
                call.checkout = self.checkouts.of(call.identity)
        except ClientGone:
            return
        except asyncio.CancelledError:
            await self._stopped(call, outgoing)
            return
        except ReefError as error:
            if isinstance(error, TooLarge) and "expect" not in call.headers:
                await discard(receive)
            self._error(call, outgoing, error)
            await outgoing.finish()
            return
        try:
            await until_gone(self._answer(call, outgoing), scope, left=call.leave)
        except asyncio.CancelledError:
            call.stopped = True
        if call.stopped:
            await self._stopped(call, outgoing)

    async def _stopped(self, call: Call, outgoing: Outgoing) -> None:
        """The time to drain is over; what there was is recorded. A response that began just breaks off."""
        if not outgoing.started:
            self._error(call, outgoing, EngineUnavailable("the daemon is stopping", hint="send the request again"))
            await outgoing.finish()

    async def _answer(self, call: Call, outgoing: Outgoing) -> None:
        """Serve, record, then let the end go out. Only this task ends a call, whatever happened to it."""
        try:
            await self._serve(call, outgoing)
        except asyncio.CancelledError:
            call.stopped = not call.left
            call.end, call.error = End.CANCELLED, "the daemon stopped" if call.stopped else "the client left"
        except ReefError as error:
            self._error(call, outgoing, error)
        except Exception:  # the edge: an agent gets an answer it can parse, the log gets the traceback
            _log.exception("%s failed", call.receipt)
            self._error(call, outgoing, EngineError("an internal error", hint="reef logs"))
        finally:
            outgoing.leave()
        response = outgoing.captured()
        try:
            await self.recorder.record(call.exchange(response), call.transcript(response))
        finally:
            self.live.end(call)
        if call.end is End.CANCELLED:
            return
        if call.broken:
            return  # the provider broke off; so does this response, and the agent retries as it would without Reef
        await outgoing.finish()

    async def _serve(self, call: Call, outgoing: Outgoing) -> None:
        try:
            body = await plain(call.request, call.headers.get("content-encoding", ""), self.server.max_body_mb << 20)
        except TooLarge:
            call.request = b""  # nobody reads it for the record either
            raise
        peek = call.codec.peek(body)
        call.model_asked = peek.model
        if speaks_of_reef(body) and await self.inband.answered(call, outgoing, body):
            return
        self.live.begin(call, outgoing)
        if peek.stream and self.server.keepalive_seconds:
            outgoing.keep_alive(self.server.keepalive_seconds)
        targets = self.router.targets(peek.model, call.dialect, call.served.routing)
        for target in targets[:-1]:
            if await self._ask(call, outgoing, target, body, last=False):
                return
        await self._ask(call, outgoing, targets[-1], body, last=True)

    async def _ask(self, call: Call, outgoing: Outgoing, target: Target, body: bytes, *, last: bool) -> bool:
        """Whether this engine answered. Only the last one's failure is an answer too, and whatever began stays."""
        call.engine, call.model_there, call.prices = target.engine.name, target.model, target.prices
        try:
            if hasattr(target.engine, "relay"):  # isinstance of a protocol takes 20 µs
                engine = cast(RelayEngine, target.engine)
                if call.dialect not in engine.dialects or foreign(call.dialect, body):
                    return await self._translate(call, outgoing, target, body, last=last)
                request = call.upstream() if target.model is None else call.upstream_as(renamed(body, target.model))
                return await self._relay(call, outgoing, engine, request, last=last)
            await self._generate(call, outgoing, target.engine, call.codec.parse(await self._whole(call, body)))
        except EngineError as error:
            if last or outgoing.begun or not another_may_answer(error.status):
                raise
            _log.warning("%s: the next engine is asked: %s", call.receipt, error.message)
            return False
        return True

    async def _relay(
        self, call: Call, outgoing: Outgoing, engine: RelayEngine, request: RelayRequest, *, last: bool
    ) -> bool:
        response = await engine.relay(request)
        try:
            if not last and another_may_answer(response.status):
                _log.warning("%s: the next engine is asked: %s answered %d", call.receipt, engine.name, response.status)
                return False
            await pass_on(call, outgoing, response)
        finally:
            await response.close()
        return True

    async def _whole(self, call: Call, body: bytes) -> bytes:
        """The body for an engine that keeps no conversations."""
        if call.dialect is not Dialect.RESPONSES or call.identity is None:
            return body
        return await self.recorder.conversation(call.identity.scenario, body)

    async def _translate(self, call: Call, outgoing: Outgoing, target: Target, body: bytes, *, last: bool) -> bool:
        """As `_relay`, by an engine that speaks another dialect, or must not see what another engine sealed."""
        request = await asyncio.to_thread(call.codec.parse, await self._whole(call, body))
        asked = replace(request, model=target.model or request.model)
        engine = cast(RelayEngine, target.engine)
        translation = Translation(engine, spoken(engine, call.dialect), asked, call.receipt)
        try:
            refusal = await translation.ask(call.upstream().headers)
            if refusal is None:
                async with aclosing(translation.events()) as events:
                    await render(call, outgoing, Answer(request, asked.model, await anext(events), events))
            elif not last and another_may_answer(refusal.status):
                _log.warning("%s: the next engine is asked: it answered %d", call.receipt, refusal.status)
                return False
            else:
                refuse(call, outgoing, refusal)
        finally:
            await translation.close()
        return True

    async def _generate(self, call: Call, outgoing: Outgoing, engine: TokenEngine, request: ChatRequest) -> None:
        lora = self.heads.lora(call.served)
        events = engine.generate(request, lora=lora)
        try:
            try:
                first = await anext(events)
            except BadWeights as error:
                if lora is None or call.identity is None:
                    raise
                self.heads.unfit(call.identity.scenario, call.served, error)
                lora, events = None, engine.generate(request)
                first = await anext(events)
            model = engine.status().model or request.model
            call.weights = engine.weights(lora)
            await render(call, outgoing, Answer(request, model, first, events))
        finally:
            await events.aclose()

    def _error(self, call: Call, outgoing: Outgoing, error: ReefError) -> None:
        """Put the dialect's own error in the place of what was not sent yet."""
        cut = outgoing.started and outgoing.begun
        call.end = End.INCOMPLETE if cut else End.ERROR
        call.error = error.message
        # Agents ask again after a connection that broke, not after an error inside the answer.
        call.broken = isinstance(error, BrokeOff) and cut and breaks(call.dialect)
        if call.broken:
            return
        message = worded(error)
        if outgoing.started:
            outgoing.hold(call.failure(error.status, error.kind, message))
            return
        outgoing.replace(error.status, head_of(error), call.codec.error(error.status, error.kind, message))
