"""Continuous batching: every step feeds what each slot has unread, decoding slots first, and samples where all is read.

A slot reading its prompt and one that decodes differ only in how many tokens they have unread, so a slot whose memory
was taken away simply reads again. One thread runs `run`; `submit`, `cancel` and `stop` may come from any. Fair: first
come, first served, for slots as for memory.
"""

import collections
import queue
import time
from collections.abc import Callable, Sequence
from typing import Final

from daemon.core.errors import BadRequest, ContextOverflow, EngineError
from daemon.core.records import EngineEvent, Started
from daemon.engines.llama.context import BATCH, Context, Outcome, Share
from daemon.engines.llama.generation import Generation
from daemon.engines.llama.sampling import log_probability
from daemon.engines.llama.slots import Slot, common_bytes, common_tokens, tokenize_like

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
    """Serves generations with one context. ``send`` gets each step's events, in order, tagged by request number."""

    def __init__(self, context: Context, send: Callable[[Batch], None]) -> None:
        self.speed = Speed()
        self._context = context
        self._vocab = context.model.vocab
        self._send = send
        self._inbox: queue.SimpleQueue[Generation | None] = queue.SimpleQueue()
        self._waiting: collections.deque[Generation] = collections.deque()
        self._known: dict[int, Generation] = {}
        self._batch: frozenset[Generation] = frozenset()
        self._steps = 0
        self._out: Batch = []

    # -- any thread -----------------------------------------------------------------------------------

    def submit(self, generation: Generation) -> None:
        self._known[generation.number] = generation
        self._inbox.put(generation)

    def cancel(self, number: int) -> None:
        """Stops work on a request, inside a running step too."""
        generation = self._known.get(number)
        if generation is not None:
            generation.cancelled = True
            if generation in self._batch:
                self._context.abort = True

    def stop(self) -> None:
        """End `run` after the step it is in; what it was answering is left unfinished."""
        self._inbox.put(None)

    # -- the thread that decodes ----------------------------------------------------------------------

    def run(self) -> None:
        """Serve until `stop`; sleeps while there is nothing to do."""
        while self._receive():
            self._drop_cancelled()
            self._admit()
            self._step()
            if self._out:
                self._send(self._out)
                self._out = []

    def _receive(self) -> bool:
        while not (self._active() or self._waiting) or not self._inbox.empty():
            generation = self._inbox.get()
            if generation is None:
                return False
            self._waiting.append(generation)
        return True

    def _active(self) -> list[Slot]:
        return [slot for slot in self._context.slots if slot.generation is not None]

    def _drop_cancelled(self) -> None:
        for slot in self._active():
            if slot.generation is not None and slot.generation.cancelled:
                self._release(slot)
        for generation in [g for g in self._waiting if g.cancelled]:
            self._waiting.remove(generation)
            self._forget(generation)

    def _forget(self, generation: Generation) -> None:
        self._known.pop(generation.number, None)
        generation.prompt.sampler.close()

    def _release(self, slot: Slot) -> None:
        """The slot is free; its conversation stays for whoever goes on with it."""
        if slot.generation is not None:
            self._forget(slot.generation)
        slot.generation = None
        for other in self._context.slots:
            other.parked = False

    # -- admission ------------------------------------------------------------------------------------

    def _admit(self) -> None:
        while self._waiting and any(slot.generation is None for slot in self._context.slots):
            generation = self._waiting.popleft()
            try:
                self._place(generation)
            except EngineError as error:
                self._out.append((generation.number, error))
                self._forget(generation)

    def _place(self, generation: Generation) -> None:
        """Choose a slot, keep what it or another has read already. Raises ContextOverflow."""
        text = generation.prompt.text
        slots = self._context.slots
        nearest = max(slots, key=lambda slot: (common_bytes(slot.text, text), slot.generation is None))
        tokens = tokenize_like(nearest, text, self._vocab)
        if not tokens:
            raise BadRequest("the model's chat template makes nothing of this conversation")
        if len(tokens) >= self._context.limit:
            raise ContextOverflow(len(tokens), self._context.limit)
        reusable = {slot.sequence: self._reusable(slot, tokens) for slot in slots}
        slot = self._choose(reusable)
        best = max(slots, key=lambda other: (reusable[other.sequence], other is slot))
        if best is slot:
            self._context.cut(slot, reusable[slot.sequence])
        else:
            self._context.clear(slot)
            if reusable[best.sequence]:
                self._context.share(best, slot, reusable[best.sequence])
        slot.assign(tokens, text, self._vocab)
        slot.generation, slot.parked = generation, False
        generation.prompt_ids, generation.cached = list(tokens), slot.read
        self._out.append((generation.number, Started(len(tokens), slot.read)))

    def _reusable(self, slot: Slot, tokens: list[int]) -> int:
        """How many of ``tokens`` the slot has in memory; one is always left to decode."""
        count = min(common_tokens(slot.tokens, tokens), slot.read, len(tokens) - 1)
        if not self._context.model.can_cut and (count < slot.read or slot.generation is not None):
            return 0  # a recurrent state is all or nothing
        return count

    def _choose(self, reusable: dict[int, int]) -> Slot:
        """A free slot: the one that this conversation goes on from, else the one unused for longest.

        A slot of which less than half would be kept holds another conversation, whose beginning is the same.
        """
        free = [slot for slot in self._context.slots if slot.generation is None]
        nearest = max(free, key=lambda slot: reusable[slot.sequence])
        if 2 * reusable[nearest.sequence] > nearest.read:
            return nearest
        return min(free, key=lambda slot: (slot.read > 0, slot.used))

    # -- one step -------------------------------------------------------------------------------------

    def _step(self) -> None:
        shares = self._shares()
        if not shares:
            return
        self._steps += 1
        for share in shares:
            share.slot.used = self._steps
        self._batch = frozenset(share.slot.generation for share in shares if share.slot.generation is not None)
        self._context.abort = any(generation.cancelled for generation in self._batch)
        started = time.perf_counter()
        code, rows = self._context.decode(shares)
        self._batch = frozenset()
        if code != Outcome.DONE:
            self._failed(code, shares)
            return
        self.speed.note(shares, time.perf_counter() - started)
        for share, row in zip(shares, rows, strict=True):
            completes = share.completes
            share.slot.read += share.count
            if completes:
                self._sample(share.slot, row)

    def _shares(self) -> list[Share]:
        """One token for each slot that decodes, then as much of the prompts, oldest first, as the step has time for."""
        active = [slot for slot in self._active() if not slot.parked]
        active.sort(key=lambda slot: slot.generation.number if slot.generation else 0)
        shares = [Share(slot, 1) for slot in active if slot.unread == 1]
        seconds, least = (_STEP_SHARED, _LEAST_SHARED) if shares else (_STEP_READING, _LEAST_READING)
        room = min(BATCH - len(shares), max(least, int((self.speed.prompt or BATCH) * seconds)))
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
            token = generation.prompt.sampler.sample(self._context.handle, row, self._context.logits)
        except EngineError as error:
            self._out.append((generation.number, error))
            self._release(slot)
            return
        logprob, top = log_probability(
            self._context.logits(row), token, sampling.top_logprobs if sampling.logprobs else 0
        )
        events = generation.push(token, logprob, top)
        if not self._vocab.is_end(token):
            slot.append(token, self._vocab.piece(token))
        if generation.finish is None and len(slot.tokens) >= self._context.limit:
            generation.finish = "length"
        if generation.finish is not None:
            events += generation.end(self._context.weights)
        self._out += [(generation.number, event) for event in events]
        if generation.finish is not None:
            self._release(slot)

    # -- when a step does not succeed -----------------------------------------------------------------

    def _failed(self, code: int, shares: Sequence[Share]) -> None:
        """Put every sequence of the batch back to where it was known to be, then make it possible to go on."""
        for share in shares:
            self._context.cut(share.slot, share.slot.read)
        if code == Outcome.FULL:
            self._make_room()
        elif code != Outcome.ABORTED:
            for share in shares:
                if share.slot.generation is not None:
                    error = EngineError(f"llama.cpp could not read the prompt (code {code})", hint="reef logs")
                    self._out.append((share.slot.generation.number, error))
                self._release(share.slot)
                self._context.clear(share.slot)

    def _make_room(self) -> None:
        """Take memory from the conversation unused for longest; if all are in use, the newest waits and reads again."""
        idle = [slot for slot in self._context.slots if slot.generation is None and slot.read]
        if idle:
            self._context.clear(min(idle, key=lambda slot: slot.used))
            return
        active = [slot for slot in self._active() if not slot.parked]
        newest = max(active, key=lambda slot: slot.generation.number if slot.generation else 0)
        self._context.cut(newest, 0)
        newest.parked = len(active) > 1
