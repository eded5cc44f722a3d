"""Feedback from inside any agent: a person's last message that speaks to Reef is answered here, and no model is asked.

The exchange is no turn: nothing of it is recorded, so what the agent sends next goes on from the answer that was rated.
Whatever stands in the way is told in words; an agent would ask again after an error.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from daemon.core.errors import ReefError
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta
from daemon.core.records import ChatRequest, Transcript, Usage
from daemon.server.exchange import Call
from daemon.server.outgoing import Outgoing
from daemon.server.ratings import Ratings, unkept
from daemon.server.rendering import Answer, render
from daemon.store import inband
from daemon.store.db import Store

#: What the answer's ``x-reef-recording`` header says.
FEEDBACK: Final = "feedback"
_ANY: Final = b"reef-"
_WORDS: Final = (b"reef-good", b"reef-bad", b"reef-note")


def speaks_of_reef(body: bytes) -> bool:
    """Whether one of the words is anywhere in a request. Every request is asked: 13 µs for 100 KB, looked at from its
    end, which is four times as fast as `in`.
    """
    return body.rfind(_ANY) >= 0 and any(body.rfind(word) >= 0 for word in _WORDS)


@dataclass(frozen=True, slots=True)
class InBand:
    """Finds what is said to Reef, and answers."""

    store: Store
    ratings: Ratings

    async def answered(self, call: Call, outgoing: Outgoing, body: bytes) -> bool:
        """Whether the request was one to Reef; it has its answer then."""
        who = call.identity
        if who is None or who.subagent is not None or who.side:
            return False
        newest = await asyncio.to_thread(call.codec.newest, body)
        said = None if newest is None else inband.said(newest)
        if said is None:
            return False
        made = await asyncio.to_thread(call.transcript(b""))
        receipt = _receipt(made) or call.receipt
        try:
            above = await asyncio.to_thread(self.store.above, call.exchange(b""), lambda: made)
        except ReefError as error:
            words = unkept(error)
        else:
            if not above.turn:
                return False
            words = await self.ratings.keep(said, above.answer, body)
            # There is no record of this exchange: whoever keeps its receipt is led to the one that it is about.
            call.receipt = above.answer.receipt if above.answer is not None else call.receipt
        call.unrecorded = FEEDBACK
        request = await asyncio.to_thread(_request, call, body)
        rest = _said(f"{inband.ANSWER}{words}")
        await render(call, outgoing, Answer(request, call.model_asked, Started(0, 0), rest, receipt))
        return True


def _request(call: Call, body: bytes) -> ChatRequest:
    """How the answer is wanted."""
    try:
        return call.codec.parse(body)
    except ReefError:  # something in it that only its vendor reads
        peek = call.codec.peek(body)
        return ChatRequest(peek.model, (), stream=peek.stream)


def _receipt(made: Transcript) -> str | None:
    """A conversation that is kept by its vendor goes on from the answer before, under whose id this one comes."""
    return None if made.previous is None else f"rec_{made.previous.removeprefix('resp_')}"


async def _said(words: str) -> AsyncIterator[EngineEvent]:
    yield TextDelta(words)
    yield Finished("stop", Usage())
