"""Answers that have to come out the same each time: one after the other, each in a context of its own.

llama.cpp chooses how it computes by what else there is to do. On a processor attention sums 16-bit numbers in steps of
less than 64 tokens and 32-bit ones in longer steps, and in another order once 512 tokens of anybody's are in memory: a
prompt that is read together with another one gets logits that differ by up to 1.2 (measured), and now and then another
token is the likeliest. Here neither steps nor memory depend on anybody. What is left: beyond 512 tokens the last bits
depend on the number of threads, which follows how busy the machine is.
Everything here runs on the thread that decodes.
"""

import collections
from collections.abc import Callable

from daemon.core.errors import EngineError
from daemon.engines.llama.generation import Generation
from daemon.engines.llama.scheduler import Scheduler, Speed

Failed = list[tuple[int, EngineError]]


class Alone:
    """At most one at work; the others wait in order. A scheduler given with a request has its weights."""

    def __init__(self, speed: Speed, forget: Callable[[Generation], None]) -> None:
        #: None or one.
        self.at_work: list[Scheduler] = []
        self._owner: Scheduler | None = None
        self._speed = speed
        self._forget = forget
        self._waiting: collections.deque[tuple[Generation, Scheduler]] = collections.deque()

    @property
    def owners(self) -> set[Scheduler]:
        """Whose weights are needed."""
        return {owner for _, owner in self._waiting} | ({self._owner} if self._owner else set())

    def submit(self, generation: Generation, owner: Scheduler) -> Failed:
        self._waiting.append((generation, owner))
        return self.turn()

    def turn(self) -> Failed:
        """Free what has ended and begin what is next; those that could not begin, by request number."""
        if self.at_work and not self.at_work[0].has_work(background=True):
            self.close()
        failed: Failed = []
        while self._waiting and not self.at_work:
            generation, owner = self._waiting.popleft()
            if generation.cancelled:
                self._forget(generation)
                continue
            try:
                self._begin(generation, owner)
            except EngineError as error:
                failed.append((generation.number, error))
                self._forget(generation)
        return failed

    def _begin(self, generation: Generation, owner: Scheduler) -> None:
        """With as much memory as the answer can need: a context of a few hundred tokens is made in milliseconds."""
        most, prompt = owner.context.limit, generation.prompt
        tokens = len(owner.context.model.vocab.tokenize(prompt.text))
        context = owner.context.alone(min(most, tokens + (prompt.sampling.max_tokens or most)))
        self._owner, self.at_work = owner, [Scheduler(context, self._speed, self._forget)]
        self.at_work[0].submit(generation)

    def close(self) -> None:
        for scheduler in self.at_work:
            scheduler.context.close()
        self._owner, self.at_work = None, []
