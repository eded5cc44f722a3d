"""What a record says its weights thought of its tokens, read anew: the proof of which weights made it.

In this process, with a context of its own each time, so it shares nothing with the engine but the model's file.
"""

import hashlib
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from daemon.core.records import TokenSpan
from daemon.engines.base import LoraFile
from daemon.engines.llama.context import Context, Outcome, Share
from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.lora import Adapter
from daemon.engines.llama.model import Model, NativeLog
from daemon.engines.llama.sampling import log_probability

#: In nats on average: what other batch sizes move is below (0.05, measured), an adapter that changes words is above.
SAME = 0.15


class Reader:
    """``with Reader(model_path) as reader``; or around a model that is loaded."""

    def __init__(self, model: Path | Model) -> None:
        self._owned = isinstance(model, Path)
        if isinstance(model, Path):
            with model.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            spec = WorkerSpec(str(model), "reader", digest, None, 1, 1, plain=True)
            model = Model(spec, NativeLog(), lambda _: None)
        self.model = model

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owned:
            self.model.close()

    def logprobs(self, span: TokenSpan, lora: LoraFile | None = None) -> npt.NDArray[np.float64]:
        """Natural-log probabilities of the completion's tokens under these weights, shape [C]."""
        tokens = [*span.prompt_ids, *span.completion_ids]
        with self.model.adapters:
            adapter = Adapter(self.model, lora) if lora else None
            context = Context(self.model, limit=len(tokens) + 8, parallel=1, threads=1, adapter=adapter)
        slot = context.slots[0]
        slot.tokens = tokens
        found: list[float] = []
        while slot.unread:
            count = min(slot.unread, 512)
            code, [last] = context.decode([Share(slot, count)], every=True)
            assert code == Outcome.DONE, code
            for row in range(last + 1):
                following = slot.read + row + 1
                if len(span.prompt_ids) <= following < len(tokens):
                    found.append(log_probability(context.logits(row), tokens[following], 0)[0])
            slot.read += count
        with self.model.adapters:
            context.close()
        return np.array(found)

    def made_by(self, span: TokenSpan, lora: LoraFile | None = None) -> bool:
        """Whether these weights made this record."""
        return self.off_by(span, lora) < SAME

    def off_by(self, span: TokenSpan, lora: LoraFile | None = None) -> float:
        """Mean difference from the record, in nats."""
        return float(np.abs(self.logprobs(span, lora) - np.array(span.logprobs)).mean())
