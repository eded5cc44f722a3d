"""One llama_context and its slots, for one set of weights.

A `Context` belongs to a weights digest and nothing computed in it ever serves another: reusing cached keys and values
under other weights gives wrong answers (measured), so a LoRA adapter gets a Context of its own. All calls come from
one thread; only `abort` is set from others.
"""

import contextlib
import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import llama_cpp as native
import numpy as np
import numpy.typing as npt

from daemon.core.errors import EngineUnavailable
from daemon.engines.llama.lora import Adapter
from daemon.engines.llama.model import Model
from daemon.engines.llama.sampling import log_probability
from daemon.engines.llama.slots import Slot
from daemon.engines.llama.threads import Threads

#: Most tokens of one llama_decode. On 2 cores 512 at once read no faster than 128, and larger ones delay the others.
BATCH: Final = 512
#: The same of a context for one answer alone: what a step may always have, so that every prompt is cut the same way.
_BATCH_ALONE: Final = 64
#: What `Context.probe` reads: plain words, which every tokenizer knows. 16 tokens at most.
_PROBE: Final = b"The quick brown fox jumps over the lazy dog, and then it runs back home."


class Outcome(IntEnum):
    """What llama_decode returns (llama.h); anything below zero is an error."""

    DONE = 0
    FULL = 1
    ABORTED = 2


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` tokens of ``slot``, from the first unread one, in the next batch."""

    slot: Slot
    count: int

    @property
    def completes(self) -> bool:
        """After it the slot has no unread token, so its next one can be sampled."""
        return self.slot.read + self.count == len(self.slot.tokens)


class _Batch:
    """llama_batch over numpy arrays: filling it through ctypes costs a microsecond a field."""

    def __init__(self, size: int) -> None:
        self.token = np.zeros(size, np.int32)
        self.position = np.zeros(size, np.int32)
        self.sequence = np.zeros(size, np.int32)
        self.wanted = np.zeros(size, np.int8)
        self._ones = np.ones(size, np.int32)
        self._addresses = (self.sequence.ctypes.data + 4 * np.arange(size)).astype(np.uint64)
        integer = ctypes.POINTER(ctypes.c_int32)
        self.native = native.llama_batch()
        self.native.token = self.token.ctypes.data_as(integer)
        self.native.pos = self.position.ctypes.data_as(integer)
        self.native.n_seq_id = self._ones.ctypes.data_as(integer)
        self.native.seq_id = self._addresses.ctypes.data_as(ctypes.POINTER(integer))
        self.native.logits = self.wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))

    def fill(self, shares: Sequence[Share]) -> list[int]:
        """Returns, a share, the row whose logits were asked for (its last)."""
        row, last = 0, []
        for share in shares:
            slot, end = share.slot, row + share.count
            self.token[row:end] = slot.tokens[slot.read : slot.read + share.count]
            self.position[row:end] = np.arange(slot.read, slot.read + share.count)
            self.sequence[row:end] = slot.sequence
            self.wanted[row:end] = 0
            self.wanted[end - 1] = share.completes
            last.append(end - 1)
            row = end
        self.native.n_tokens = row
        return last


class Context:
    """A llama_context, its memory of keys and values, and the slots that share it."""

    def __init__(
        self,
        model: Model,
        *,
        limit: int,
        parallel: int,
        threads: int,
        background: int = 0,
        adapter: Adapter | None = None,
    ) -> None:
        """``limit``: longest conversation. The memory holds two of that, so that a side request does not evict one.

        ``parallel`` slots, and ``background`` more for requests that give way: those never take a person's
        conversation out of the memory while there is room. ``adapter`` is the context's from here on. Without
        ``parallel`` slots it is one for answers alone, see `alone`.
        """
        self.model = model
        self.adapter = adapter
        self.weights = adapter.lora.weights if adapter else model.digest
        self.limit = limit
        self._alone, self._fresh = not parallel, True
        self.batch = _BATCH_ALONE if self._alone else BATCH
        self.abort = False
        params = native.llama_context_default_params()
        params.n_ctx = limit * max(min(parallel, 2), 1)
        params.n_batch = params.n_ubatch = self.batch
        params.n_seq_max = parallel + background
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True  # any slot may use all of it, and prefixes can be shared between slots
        params.swa_full = True  # a sliding window alone could not be cut back to an earlier position
        params.no_perf = True
        self.handle: Any = native.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise EngineUnavailable(
                f"no memory for a context of {params.n_ctx} tokens with {model.name!r}",
                hint="set embedded.context lower in the configuration",
            )
        if adapter is not None:
            adapter.attach(self.handle)
        self._memory: Any = native.llama_get_memory(self.handle)
        self._batch = _Batch(self.batch)
        self._never = native.ggml_abort_callback()
        self._aborting = native.ggml_abort_callback(lambda _: self.abort)  # kept: C holds only the address
        self._threads = Threads(threads)
        self.slots = tuple(Slot(number, number >= parallel) for number in range(parallel + background))

    def alone(self, limit: int) -> "Context":
        """A context for one background answer of at most ``limit`` tokens with the same weights, which nothing else has
        been in and nothing else comes into. To be closed before this one, whose adapter it uses.
        """
        threads = self._threads
        with self.model.adapters:
            made = Context(
                self.model, limit=limit, parallel=0, background=1, threads=threads.most, adapter=self.adapter
            )
        made._threads = threads  # what the machine leaves us is known already
        return made

    def probe(self) -> npt.NDArray[np.float64]:
        """Log-probabilities of a fixed text's tokens after the first, which tell one set of weights from another.

        The first thing that a context decodes: faults show, and the weights are in memory. Leaves nothing behind.
        """
        slot = self.slots[0]
        slot.tokens = self.model.vocab.tokenize(_PROBE)[:16]
        code, [last] = self.decode([Share(slot, len(slot.tokens))], every=True)
        if code != Outcome.DONE:
            raise EngineUnavailable(f"llama.cpp cannot decode with {self.model.name!r} (code {code})", hint="reef logs")
        found = [
            log_probability(self.logits(row), token, 0)[0]
            for row, token in zip(range(last), slot.tokens[1:], strict=True)
        ]
        self.clear(slot)
        return np.array(found)

    def decode(self, shares: Sequence[Share], *, every: bool = False) -> tuple[int, list[int]]:
        """Run one batch; returns llama_decode's code and the rows for `logits`. Slots' ``read`` is left to the caller.
        ``every``: all rows have logits, not only those.

        A batch that reads a prompt takes long: `abort` ends it. Otherwise the callback, once a node of the graph and
        in Python, would cost more than it saves; and there the threads' waiting for each other counts, see `Threads`.
        """
        rows = self._batch.fill(shares)
        if every:
            self._batch.wanted[: self._batch.native.n_tokens] = 1
        reads = any(share.count > 1 for share in shares)
        threads = self._threads.most if reads else self._threads.count
        native.llama_set_n_threads(self.handle, threads, threads)
        native.llama_set_abort_callback(self.handle, self._aborting if reads else self._never, ctypes.c_void_p(0))
        started, used = time.perf_counter(), time.process_time()
        with self.model.adapters if self._fresh else contextlib.nullcontext():
            code = int(native.llama_decode(self.handle, self._batch.native))
        self._fresh = False
        if not reads:
            ended = time.perf_counter()
            self._threads.note(ended - started, time.process_time() - used, ended)
        return code, rows

    def logits(self, row: int) -> npt.NDArray[np.float32]:
        """A view of one row's logits, shape [vocabulary]; valid until the next decode."""
        pointer = native.llama_get_logits_ith(self.handle, row)
        return np.ctypeslib.as_array(pointer, (self.model.vocab.size,))

    def cut(self, slot: Slot, count: int) -> None:
        """Keep the first ``count`` tokens of a slot's memory; none where the model's memory cannot be cut."""
        if not native.llama_memory_seq_rm(self._memory, slot.sequence, count, -1):
            native.llama_memory_seq_rm(self._memory, slot.sequence, -1, -1)
            count = 0
        slot.read = count

    def share(self, source: Slot, target: Slot, count: int) -> None:
        """Let ``target``, which must be empty, have ``source``'s first ``count`` tokens: no copy, both own them."""
        native.llama_memory_seq_cp(self._memory, source.sequence, target.sequence, 0, count)
        target.read = count

    def clear(self, slot: Slot) -> None:
        """Forget a slot's conversation."""
        native.llama_memory_seq_rm(self._memory, slot.sequence, -1, -1)
        slot.forget()

    def close(self) -> None:
        """Frees the context, then its adapter, which it used."""
        native.llama_free(self.handle)
        if self.adapter is not None and not self._alone:
            self.adapter.close()
