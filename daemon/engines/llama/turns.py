"""Which context decodes next: one a set of weights, one thread for them all.

People's requests go first wherever they are; background ones run when there is no other, and for a moment now and then
so that they end some day. Contexts take turns step by step, so that two sets of weights share the machine as two
requests do. A LoRA adapter is brought in by a second thread (half a second, mostly memory for keys and values) while
the others' streams go on; only the probe, a short batch that proves its effect, runs between their steps. Weights
without work are given back, the longest unused first. Keys and values never cross from one context to another.
"""

import functools
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from daemon.core.errors import BadWeights, EngineError
from daemon.core.generation import EngineEvent
from daemon.engines.base import LoraFile
from daemon.engines.llama.alone import Alone
from daemon.engines.llama.context import Context
from daemon.engines.llama.frames import Loaded
from daemon.engines.llama.generation import Generation
from daemon.engines.llama.scheduler import Scheduler, Speed

#: LoRA adapters in memory beside the model alone: two scenarios' heads and a candidate. Each has a context (370 MB for
#: the default model at 8192 tokens), so more only while they have work, and none for nobody.
KEPT: Final = 3
_UNUSED_SECONDS: Final = 900.0
#: Background requests that have waited so long go before people's for a moment: a step, or more short ones.
_PATIENCE_SECONDS: Final = 1.0
_MOMENT_SECONDS: Final = 0.1
#: A probe that moves less than this, in nats on average, has no effect: 16-bit adapters that learned anything move it
#: a hundred times as much.
_NO_CHANGE: Final = 1e-4

Batch = list[tuple[int, EngineEvent | EngineError | Loaded]]
Bring = Callable[[LoraFile], Context]


class Turns:
    """Serves generations, whatever their weights. ``send`` gets each step's events, in order, by request number."""

    def __init__(
        self, base: Context, send: Callable[[Batch], None], *, bring: Bring, check: Callable[[LoraFile], None]
    ) -> None:
        """``bring`` checks a LoRA adapter and makes its context, ``check`` does only the first; both in a thread of
        their own, and both raise EngineError. Probes ``base``.
        """
        self.speed = Speed()
        #: When the round began that the decoding thread is in; None while it has nothing to do.
        self.round_began: float | None = None
        #: The same of the thread that brings weights.
        self.chore_began: float | None = None
        self._send = send
        self._bring, self._check = bring, check
        self._probed = base.probe()
        self._base = Scheduler(base, self.speed, self._forget)
        self._live: dict[str, Scheduler] = {base.weights: self._base}
        self._alone = Alone(self.speed, self._forget)
        self._changes: dict[str, float] = {}
        #: Requests, by number, that wait for weights: None stands for a `load`.
        self._coming: dict[LoraFile, dict[int, Generation | None]] = {}
        self._known: dict[int, Generation] = {}
        self._now = self._base
        #: Since when background requests have had no moment, what they had of it, and whether it is their turn.
        self._since, self._had, self._owed = time.monotonic(), 0.0, False
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._chores: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._out: Batch = []
        self._second = threading.Thread(target=self._do_chores, name="weights", daemon=True)
        self._second.start()

    # -- any thread -----------------------------------------------------------------------------------

    def submit(self, generation: Generation) -> None:
        self._known[generation.number] = generation
        self._inbox.put(functools.partial(self._accept, generation))
        if not generation.background and not self._owed:
            self._now.give_way()

    def load(self, number: int, lora: LoraFile) -> None:
        """Answered with `Loaded`, or an error, once the file is checked and its weights are in memory."""
        self._inbox.put(functools.partial(self._want, lora, number, None))

    def cancel(self, number: int) -> None:
        """Stops work on a request, inside a running step too."""
        generation = self._known.get(number)
        if generation is not None:
            generation.cancelled = True
            self._now.abort_for(generation)

    def stop(self) -> None:
        """End `run` after the step it is in; what it was answering is left unfinished."""
        self._inbox.put(None)

    @property
    def loras(self) -> int:
        return len(self._live) - 1

    # -- the thread that decodes ----------------------------------------------------------------------

    def run(self) -> None:
        """Serve until `stop`; sleeps while there is nothing to do."""
        while self._receive():
            self.round_began = time.monotonic()
            for scheduler in self._schedulers():
                scheduler.drop_cancelled()
            self._step()
            self._out += self._alone.turn()
            self._give_back()
            if self._out:
                self._send(self._out)
                self._out = []
        self._chores.put(None)
        self._second.join()

    def close(self) -> None:
        """Free every context but the first one. After `run`."""
        self._alone.close()
        for scheduler in self._live.values():
            if scheduler is not self._base:
                scheduler.context.close()
        self._live = {self._base.context.weights: self._base}

    def _receive(self) -> bool:
        while not (self._out or self._busy(False) or self._busy(True)) or not self._inbox.empty():
            self.round_began = None
            told = self._inbox.get()
            self.round_began = time.monotonic()
            if told is None:
                return False
            told()
        return True

    def _schedulers(self) -> list[Scheduler]:
        return [*self._live.values(), *self._alone.at_work]

    def _busy(self, background: bool) -> list[Scheduler]:
        return [scheduler for scheduler in self._schedulers() if scheduler.has_work(background=background)]

    def _step(self) -> None:
        people, behind = self._busy(False), self._busy(True)
        self._owed = bool(behind) and time.monotonic() - self._since > _PATIENCE_SECONDS
        background = self._owed or not people
        if busy := behind if background else people:
            self._now = min(busy, key=lambda scheduler: scheduler.used)
            self._use(self._now)
            self._out += self._now.step(background=background, shared=len(busy) > 1)
            if background and not self._now.aborted:
                self._had += time.monotonic() - self._now.used
                if not people or self._had >= _MOMENT_SECONDS:
                    self._since, self._had = time.monotonic(), 0.0

    @staticmethod
    def _use(scheduler: Scheduler) -> None:
        scheduler.used = time.monotonic()

    def _accept(self, generation: Generation) -> None:
        if generation.background and not self._busy(True):
            self._since = time.monotonic()
        lora = generation.lora
        scheduler = self._live.get(lora.weights) if lora else self._base
        if scheduler is not None and generation.alone:
            self._out += self._alone.submit(generation, scheduler)
        elif scheduler is not None:
            scheduler.submit(generation)
        elif lora is not None:
            self._want(lora, generation.number, generation)

    def _forget(self, generation: Generation) -> None:
        self._known.pop(generation.number, None)
        generation.prompt.sampler.close()

    # -- weights --------------------------------------------------------------------------------------

    def _want(self, lora: LoraFile, number: int, generation: Generation | None) -> None:
        """Have weights brought in, or only their file looked at where they are here already."""
        if lora in self._coming:
            self._coming[lora][number] = generation
            return
        self._coming[lora] = {number: generation}
        self._chores.put(functools.partial(self._fetch, lora, lora.weights in self._live))

    def _fetch(self, lora: LoraFile, here: bool) -> None:
        """In the other thread."""
        brought: Context | EngineError | None = None
        try:
            if here:
                self._check(lora)
            else:
                brought = self._bring(lora)
        except EngineError as error:
            brought = error
        except Exception as error:  # an edge: whatever is wrong with one file, the thread serves the next
            brought = BadWeights(f"{lora.path} cannot be used: {error!r}", hint="reef logs")
        self._inbox.put(functools.partial(self._arrived, lora, brought))

    def _arrived(self, lora: LoraFile, brought: "Context | EngineError | None") -> None:
        waiting = self._coming.pop(lora)
        try:
            if isinstance(brought, EngineError):
                raise brought
            if isinstance(brought, Context):
                self._adopt(brought)
        except EngineError as error:
            self._refuse(waiting, error)
            return
        for number, generation in waiting.items():
            if generation is not None:
                self._accept(generation)
            elif lora.weights in self._live:
                self._use(self._live[lora.weights])
                self._out.append((number, Loaded(self._changes[lora.weights])))
            else:  # given back while its file was looked at
                self._want(lora, number, None)

    def _refuse(self, waiting: "dict[int, Generation | None]", error: EngineError) -> None:
        for number, generation in waiting.items():
            self._out.append((number, error))
            if generation is not None:
                self._forget(generation)

    def _adopt(self, context: Context) -> None:
        """Let a context serve if its weights say anything else than the model alone. Raises BadWeights."""
        if context.weights in self._live:
            self._discard(context)
            return
        try:
            probed = context.probe()
        except EngineError:
            self._discard(context)
            raise
        change = float(np.abs(probed - self._probed).mean())
        if not change > _NO_CHANGE:  # NaN is not
            lora = context.adapter.lora.path if context.adapter else ""
            self._discard(context)
            raise BadWeights(
                f"{lora} makes the model's probabilities NaN or infinite"
                if not np.isfinite(probed).all()
                else f"{lora} has no effect: it moves log-probabilities by {change:.1g} on average",
                hint="train longer, or at a higher learning rate",
            )
        self._live[context.weights] = Scheduler(context, self.speed, self._forget)
        self._changes[context.weights] = change
        self._use(self._live[context.weights])

    def _give_back(self) -> None:
        """Free what has no work and is over `KEPT`, or unused for long; not what came or served last."""
        if not self.loras:
            return
        latest = max(self._live.values(), key=lambda scheduler: scheduler.used)
        busy = {*self._busy(False), *self._busy(True), *self._alone.owners, self._base, latest}
        spare = sorted((one for one in self._live.values() if one not in busy), key=lambda scheduler: scheduler.used)
        over, long_ago = self.loras - KEPT, time.monotonic() - _UNUSED_SECONDS
        for number, scheduler in enumerate(spare):
            if number >= over and scheduler.used > long_ago:
                break
            del self._live[scheduler.context.weights], self._changes[scheduler.context.weights]
            self._discard(scheduler.context)

    def _discard(self, context: Context) -> None:
        self._chores.put(functools.partial(_close, context))

    # -- the thread that brings weights ---------------------------------------------------------------

    def _do_chores(self) -> None:
        while (chore := self._chores.get()) is not None:
            self.chore_began = time.monotonic()
            chore()
            self.chore_began = None


def _close(context: Context) -> None:
    with context.model.adapters:
        context.close()
