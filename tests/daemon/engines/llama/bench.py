"""The worker's inner parts with a real model, on a thread as in the worker, and what they sent."""

import functools
import queue
import threading
import time
from collections.abc import Callable

from daemon.core.errors import EngineError
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta
from daemon.core.records import ChatRequest, Message, Sampling, Text
from daemon.engines.base import LoraFile
from daemon.engines.llama.context import Context
from daemon.engines.llama.frames import Loaded
from daemon.engines.llama.generation import Generation, Prompt
from daemon.engines.llama.lora import Adapter, check
from daemon.engines.llama.model import Model
from daemon.engines.llama.sampling import Defaults, Sampler
from daemon.engines.llama.turns import Batch, Turns

LIMIT = 120


class Bench:
    """`Turns` on its thread, and what it sent."""

    def __init__(self, model: Model, parallel: int, limit: int = LIMIT, background: int = 0) -> None:
        self.model = model
        self._new = functools.partial(Context, model, limit=limit, parallel=parallel, background=background, threads=1)
        self.context = self._new()
        self.turns = Turns(self.context, self._take, bring=self._bring, check=lambda lora: check(lora, model))
        self.sent: dict[int, list[EngineEvent | EngineError | Loaded]] = {}
        self.order: list[int] = []
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._numbers = iter(range(1, 10_000))
        self._thread = threading.Thread(target=self.turns.run)
        self._thread.start()

    def close(self) -> None:
        self.turns.stop()
        self._thread.join()
        self.turns.close()
        self.context.close()

    def _bring(self, lora: LoraFile) -> Context:
        check(lora, self.model)
        with self.model.adapters:
            return self._new(adapter=Adapter(self.model, lora))

    def _take(self, batch: Batch) -> None:
        for number, event in batch:
            self.sent.setdefault(number, []).append(event)
            self.order.append(number)
        self._news.put(None)

    def submit(
        self,
        text: str,
        tokens: int = 8,
        *,
        lora: LoraFile | None = None,
        background: bool = False,
        alone: bool = False,
    ) -> int:
        number = next(self._numbers)
        sampling = Sampling(max_tokens=tokens, temperature=0)
        request = ChatRequest("m", (Message("user", (Text(text),)),), sampling=sampling)
        sampler = Sampler(self.model.vocab, sampling, Defaults())
        prompt = Prompt.of(request, text.encode(), sampler)
        vocab, background = self.model.vocab, background or alone
        self.turns.submit(Generation(number, prompt, vocab, lora=lora, background=background, alone=alone))
        return number

    def load(self, lora: LoraFile) -> float:
        """What `Turns.load` answers; raises what it refuses with."""
        number = next(self._numbers)
        self.turns.load(number, lora)
        self.until(lambda: number in self.sent)
        [answer] = self.sent[number]
        if isinstance(answer, EngineError):
            raise answer
        assert isinstance(answer, Loaded)
        return answer.change

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            self._news.get(timeout=max(deadline - time.monotonic(), 0.01))

    def wait(self, *numbers: int) -> list[Finished]:
        self.until(lambda: all(self.done(number) for number in numbers))
        ends = [self.sent[number][-1] for number in numbers]
        assert all(isinstance(end, Finished) for end in ends), ends
        return [end for end in ends if isinstance(end, Finished)]

    def done(self, number: int) -> bool:
        return bool(self.sent.get(number)) and isinstance(self.sent[number][-1], Finished | EngineError)

    def started(self, number: int) -> Started:
        event = self.sent[number][0]
        assert isinstance(event, Started)
        return event

    def text(self, number: int) -> str:
        return "".join(event.text for event in self.sent[number] if isinstance(event, TextDelta))
