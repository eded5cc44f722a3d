"""Continuous batching: every step feeds what each slot has unread, decoding slots first, and samples where all is read.

A slot reading its prompt and one that decodes differ only in how many tokens they have unread, so a slot whose memory
was taken away simply reads again. `Turns` says when it is this context's turn; only `abort_for` and `give_way` may come
from any thread. Fair: first come, first served, for slots as for memory. Background requests have slots of their own,
and keep them while they wait for people's to be done.
"""

import collections
import time
from collections.abc import Callable, Sequence
from typing import Final

from daemon.core.errors import BadRequest, ContextOverflow, EngineError
from daemon.core.generation import EngineEvent, Started
from daemon.core.prefix import shared
from daemon.engines.llama.context import Context, Outcome, Share
from daemon.engines.llama.generation import Generation
from daemon.engines.llama.sampling import log_probability
from daemon.engines.llama.slots import Slot, tokenize_like

#: Longest step in seconds: while others decode (their streams wait that long), and while all are reading.
_STEP_SHARED: Final = 0.25
_STEP_READING: Final = 1.0
#: But no fewer tokens: 128 at once are read fastest, 64 nearly as fast, 16 at less than half the speed (measured).
_LEAST_SHARED: Final = 64
_LEAST_READING: Final = 128

Batch = list[tuple[int, EngineEvent | EngineError]]


class Speed:
    """Tokens a second, of steps that read prompts and of steps that only decode; recent steps count most."""

    def __init__(self) -> None:
        self.prompt: float | None = None
        self.decode: float | None = None

    def note(self, shares: Sequence[Share], seconds: float) -> None:
        reading = sum(share.count for share in shares if share.count > 1)
        tokens = reading or len(shares)
        rate = tokens / max(seconds, 1e-6)
        if not reading:
            self.decode = rate if self.decode is None else self.decode * 0.95 + rate * 0.05
        elif reading >= _LEAST_SHARED // 2:
            self.prompt = rate if self.prompt is None else self.prompt * 0.7 + rate * 0.3


class Scheduler:
    """Serves generations with one context. ``speed`` is all contexts', ``forget`` is told of each generation's end."""

    def __init__(self, context: Context, speed: Speed, forget: Callable[[Generation], None]) -> None:
        self.context = context
        #: When it was last this context's turn, on `Turns`' clock.
        self.used = 0.0
        #: Whether its last step was ended before it had read anything.
        self.aborted = False
        self._speed = speed
        self._vocab = context.model.vocab
        self._forget = forget
        #: People's requests, and background ones.
        self._waiting: dict[bool, collections.deque[Generation]] = {kind: collections.deque() for kind in (False, True)}
        self._batch: frozenset[Generation] = frozenset()
        self._steps = 0
        self._out: Batch = []

    # -- any thread -----------------------------------------------------------------------------------

    def abort_for(self, generation: Generation) -> None:
        """End the running step if it works for a generation that was cancelled."""
        if generation in self._batch:
            self.context.abort = True

    def give_way(self) -> None:
        """End the running step if it is for background requests."""
        if any(generation.background for generation in self._batch):
            self.context.abort = True

    # -- the thread that decodes ----------------------------------------------------------------------

    def submit(self, generation: Generation) -> None:
        self._waiting[generation.background].append(generation)

    def has_work(self, *, background: bool) -> bool:
        return bool(self._waiting[background] or self._active(background))

    def drop_cancelled(self) -> None:
        for background, waiting in self._waiting.items():
            for slot in self._active(background):
                if slot.generation is not None and slot.generation.cancelled:
                    self._release(slot)
            for generation in [g for g in waiting if g.cancelled]:
                waiting.remove(generation)
                self._forget(generation)

    def step(self, *, background: bool, shared: bool) -> Batch:
        """One batch for people's requests, or one for background ones. ``shared``: other contexts' streams wait for it.
        Returns events in order, tagged by request number.
        """
        self._admit(background)
        self._step(background, shared or background)
        out, self._out = self._out, []
        return out

    def _active(self, background: bool) -> list[Slot]:
        return [slot for slot in self.context.slots if slot.generation is not None and slot.background is background]

    def _release(self, slot: Slot) -> None:
        """The slot is free; its conversation stays for whoever goes on with it."""
        if slot.generation is not None:
            self._forget(slot.generation)
        slot.generation = None
        for other in self.context.slots:
            other.parked = False

    # -- admission ------------------------------------------------------------------------------------

    def _admit(self, background: bool) -> None:
        waiting = self._waiting[background]
        while waiting and self._free(background):
            generation = waiting.popleft()
            try:
                self._place(generation)
            except EngineError as error:
                self._out.append((generation.number, error))
                self._forget(generation)

    def _free(self, background: bool) -> list[Slot]:
        return [slot for slot in self.context.slots if slot.generation is None and slot.background is background]

    def _place(self, generation: Generation) -> None:
        """Choose a slot, keep what it or another has read already. Raises ContextOverflow."""
        text = generation.prompt.text
        slots = self.context.slots
        nearest = max(slots, key=lambda slot: (shared(slot.text, text), slot.generation is None))
        tokens = tokenize_like(nearest, text, self._vocab)
        if not tokens:
            raise BadRequest("the model's chat template makes nothing of this conversation")
        if len(tokens) >= self.context.limit:
            raise ContextOverflow(len(tokens), self.context.limit)
        reusable = {slot.sequence: self._reusable(slot, tokens) for slot in slots}
        slot = self._choose(self._free(generation.background), reusable)
        best = max(slots, key=lambda other: (reusable[other.sequence], other is slot))
        if best is slot:
            self.context.cut(slot, reusable[slot.sequence])
        else:
            self.context.clear(slot)
            if reusable[best.sequence]:
                self.context.share(best, slot, reusable[best.sequence])
        slot.assign(tokens, text, self._vocab)
        slot.generation, slot.parked = generation, False
        generation.prompt_ids, generation.cached = list(tokens), slot.read
        self._out.append((generation.number, Started(len(tokens), slot.read)))

    def _reusable(self, slot: Slot, tokens: list[int]) -> int:
        """How many of ``tokens`` the slot has in memory; one is always left to decode."""
        count = min(shared(slot.tokens, tokens), slot.read, len(tokens) - 1)
        if not self.context.model.can_cut and (count < slot.read or slot.generation is not None):
            return 0  # a recurrent state is all or nothing
        return count

    @staticmethod
    def _choose(free: Sequence[Slot], reusable: dict[int, int]) -> Slot:
        """A free slot: the one that this conversation goes on from, else the one unused for longest.

        A slot of which less than half would be kept holds another conversation, whose beginning is the same.
        """
        nearest = max(free, key=lambda slot: reusable[slot.sequence])
        if 2 * reusable[nearest.sequence] > nearest.read:
            return nearest
        return min(free, key=lambda slot: (slot.read > 0, slot.used))

    # -- one step -------------------------------------------------------------------------------------

    def _step(self, background: bool, short: bool) -> None:
        self.aborted = False
        shares = self._shares(background, short)
        if not shares:
            return
        self._steps += 1
        for share in shares:
            share.slot.used = self._steps
        self._batch = frozenset(share.slot.generation for share in shares if share.slot.generation is not None)
        self.context.abort = any(generation.cancelled for generation in self._batch)
        started = time.perf_counter()
        code, rows = self.context.decode(shares)
        self._batch = frozenset()
        self.aborted = code == Outcome.ABORTED
        if code != Outcome.DONE:
            self._failed(code, shares, background)
            return
        self._speed.note(shares, time.perf_counter() - started)
        for share, row in zip(shares, rows, strict=True):
            completes = share.completes
            share.slot.read += share.count
            if completes:
                self._sample(share.slot, row)

    def _shares(self, background: bool, short: bool) -> list[Share]:
        """One token for each slot that decodes, then as much of the prompts, oldest first, as the step has time for."""
        active = [slot for slot in self._active(background) if not slot.parked]
        active.sort(key=lambda slot: slot.generation.number if slot.generation else 0)
        shares = [Share(slot, 1) for slot in active if slot.unread == 1]
        seconds, least = (_STEP_SHARED, _LEAST_SHARED) if shares or short else (_STEP_READING, _LEAST_READING)
        most = self.context.batch
        room = min(most - len(shares), max(least, int((self._speed.prompt or most) * seconds)))
        for slot in active:
            if slot.unread > 1 and room > 0:
                shares.append(Share(slot, min(slot.unread, room)))
                room -= shares[-1].count
        return shares

    def _sample(self, slot: Slot, row: int) -> None:
        generation = slot.generation
        if generation is None:
            return
        sampling = generation.prompt.sampling
        try:
            token = generation.prompt.sampler.sample(self.context.handle, row, self.context.logits)
        except EngineError as error:
            self._out.append((generation.number, error))
            self._release(slot)
            return
        logprob, top = log_probability(
            self.context.logits(row), token, sampling.top_logprobs if sampling.logprobs else 0
        )
        events = generation.push(token, logprob, top)
        if not self._vocab.is_end(token):
            slot.append(token, self._vocab.piece(token))
        if generation.finish is None and len(slot.tokens) >= self.context.limit:
            generation.finish = "length"
        if generation.finish is not None:
            events += generation.end(self.context.weights)
        self._out += [(generation.number, event) for event in events]
        if generation.finish is not None:
            self._release(slot)

    # -- when a step does not succeed -----------------------------------------------------------------

    def _failed(self, code: int, shares: Sequence[Share], background: bool) -> None:
        """Put every sequence of the batch back to where it was known to be, then make it possible to go on."""
        for share in shares:
            self.context.cut(share.slot, share.slot.read)
        if code == Outcome.FULL:
            self._make_room(background)
        elif code != Outcome.ABORTED:
            for share in shares:
                if share.slot.generation is not None:
                    error = EngineError(f"llama.cpp could not read the prompt (code {code})", hint="reef logs")
                    self._out.append((share.slot.generation.number, error))
                self._release(share.slot)
                self.context.clear(share.slot)

    def _make_room(self, background: bool) -> None:
        """Take memory from who needs it least: idle background slots, background work that waits, a conversation unused
        for longest; if all are in use, the newest waits. Who lost its memory reads again.
        """
        idle = [slot for slot in self.context.slots if slot.generation is None and slot.read]
        paused = [] if background else [slot for slot in self._active(True) if slot.read]
        if idle and not (paused and not any(slot.background for slot in idle)):
            self.context.clear(min(idle, key=lambda slot: (not slot.background, slot.used)))
        elif paused:
            self.context.cut(paused[-1], 0)
        else:
            active = [slot for slot in self._active(background) if not slot.parked]
            newest = max(active, key=lambda slot: slot.generation.number if slot.generation else 0)
            self.context.cut(newest, 0)
            newest.parked = len(active) > 1
