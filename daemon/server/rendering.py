"""An engine's events on their way to the client, in the client's dialect."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from daemon.core.generation import EngineEvent, Finished
from daemon.core.records import ChatRequest
from daemon.server.exchange import Call
from daemon.server.outgoing import JSON, SSE, Outgoing
from daemon.wire.base import Renderer


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that began: its first event is here, so that what fails before it can still be an error of its own."""

    request: ChatRequest
    model: str
    first: EngineEvent
    rest: AsyncIterator[EngineEvent]
    #: The receipt that its id follows from; None: the call's.
    receipt: str | None = None


async def render(call: Call, outgoing: Outgoing, answer: Answer) -> None:
    """Send an answer: events as they come for a stream, one body at the end otherwise."""
    stream = answer.request.stream
    receipt = answer.receipt or call.receipt
    renderer = call.codec.renderer(answer.request, receipt, answer.model, int(time.time()))
    call.failure = renderer.error
    await outgoing.begin(200, list(SSE if stream else JSON))
    head = renderer.event(answer.first)
    if stream and head:
        await outgoing.feed(head)
    call.renderer = renderer
    async for chunk in _rendered(call, renderer, answer.rest, stream=stream):
        await outgoing.feed(chunk)


async def _rendered(
    call: Call, renderer: Renderer, events: AsyncIterator[EngineEvent], *, stream: bool
) -> AsyncIterator[bytes]:
    async for event in events:
        if isinstance(event, Finished):
            call.span, call.usage = event.span, event.usage
            call.weights = event.span.weights if event.span else call.weights
        data = renderer.event(event)
        if stream and data:
            yield data
    yield renderer.finish() if stream else renderer.body()
