"""Feedback from inside any agent: a person's last message that speaks to Reef is answered here, and no model is asked.

It is durable before its answer goes out, and the exchange is no turn: nothing of it is recorded, so what the agent
sends next goes on from the answer that was rated. Whatever stands in the way is told in words; an agent would ask again
after an error.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from daemon.core.errors import BadRequest, ReefError
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta
from daemon.core.ids import new_id
from daemon.core.records import ChatRequest, Transcript, Usage
from daemon.core.rows import NewReport, RecordRow
from daemon.server.actions import parse_report
from daemon.server.events import Changes
from daemon.server.exchange import Call
from daemon.server.outgoing import Outgoing
from daemon.server.recorder import Recorder
from daemon.server.relaying import worded
from daemon.server.rendering import Answer, render
from daemon.store import inband
from daemon.store.db import Store
from daemon.store.inband import Said

#: What the answer's ``x-reef-recording`` header says.
FEEDBACK: Final = "feedback"
_ANY: Final = b"reef-"
_WORDS: Final = (b"reef-good", b"reef-bad", b"reef-note")
_SCORES: Final = {"good": 1.0, "bad": 0.0, "note": None}


def speaks_of_reef(body: bytes) -> bool:
    """Whether one of the words is anywhere in a request. Every request is asked: 13 µs for 100 KB, looked at from its
    end, which is four times as fast as `in`.
    """
    return body.rfind(_ANY) >= 0 and any(body.rfind(word) >= 0 for word in _WORDS)


@dataclass(frozen=True, slots=True)
class InBand:
    """Keeps what is said to Reef, and answers."""

    store: Store
    recorder: Recorder
    changes: Changes

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
        try:
            above = await asyncio.to_thread(self.store.above, call.exchange(b""), lambda: made)
            if not above.turn:
                return False
            words = await self._kept(call, body, said, above.answer)
        except ReefError as error:
            words = f"not recorded: {worded(error)}"
        call.unrecorded = FEEDBACK
        request = await asyncio.to_thread(_request, call, body)
        rest = _said(f"{inband.ANSWER}{words}")
        await render(call, outgoing, Answer(request, call.model_asked, Started(0, 0), rest, _receipt(made)))
        return True

    async def _kept(self, call: Call, body: bytes, said: Said, about: RecordRow | None) -> str:
        """What to answer. Raises ReefError."""
        if about is None:
            return (
                "not recorded: this conversation has no recorded answer yet (reef good · bad · note rate the last one)"
            )
        if said.word == "note" and not said.text:
            return "not recorded: a note has words, as in: reef-note use uv, not pip"
        score = _SCORES[said.word]
        new = parse_report(
            {"score": score, "feedback": said.text or None, "references": [about.receipt]}, about.scenario
        )
        await self._stored(replace(new, id=_id(body, about)))
        why = self.recorder.passed_since(about.started_ns)
        later = f" (a later answer was not recorded: {why})" if why else ""
        return f"recorded {said.word} on {about.receipt}{later}"

    async def _stored(self, new: NewReport) -> None:
        """Durable when this returns. What an agent sends again is the same report, unless that was taken back."""
        row, created = await asyncio.wrap_future(self.store.report(new))
        if not created and row.undone_ns is not None:
            row, created = await asyncio.wrap_future(self.store.report(replace(new, id=new_id("rep"))))
        if created:
            self.changes.reported(row)


def _id(body: bytes, about: RecordRow) -> str:
    return f"rep_{blake2b(about.receipt.encode() + body, digest_size=13).hexdigest()}"


def _request(call: Call, body: bytes) -> ChatRequest:
    """How the answer is wanted."""
    try:
        return call.codec.parse(body)
    except BadRequest:  # something in it that only its vendor reads
        peek = call.codec.peek(body)
        return ChatRequest(peek.model, (), stream=peek.stream)


def _receipt(made: Transcript) -> str | None:
    """A conversation that is kept by its vendor goes on from the answer before, under whose id this one comes."""
    return None if made.previous is None else f"rec_{made.previous.removeprefix('resp_')}"


async def _said(words: str) -> AsyncIterator[EngineEvent]:
    yield TextDelta(words)
    yield Finished("stop", Usage())
