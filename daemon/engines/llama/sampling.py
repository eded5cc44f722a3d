"""Choosing the next token: llama.cpp's sampler chain, a grammar where the answer's form is forced, log-probabilities.

What a request leaves open: temperature 0.7, top_k 40, top_p 0.95, min_p 0 (or what the model's file recommends), so
that small models stay readable. ``top_k=0, top_p=1, temperature=1`` samples the model as it is; 0 is greedy.
Log-probabilities are of the model itself: natural, at temperature 1, before any of the above.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import llama_cpp as native
import numpy as np
import numpy.typing as npt

from daemon.core.errors import BadRequest, EngineError
from daemon.core.records import Sampling
from daemon.engines.llama.model import Model, Vocab

Logits = npt.NDArray[np.float32]

_RANDOM_SEED: Final = 0xFFFFFFFF
#: Presence and frequency penalties count the answer's tokens; the longest answer anyone penalises.
_PENALTY_WINDOW: Final = 8192


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the request leaves open."""

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.0

    @classmethod
    def of(cls, model: Model) -> "Defaults":
        """The file's own recommendation (``general.sampling.*``) over ours."""

        def read(key: str, fallback: float) -> float:
            try:
                return float(model.metadata(f"general.sampling.{key}") or fallback)
            except ValueError:
                return fallback

        own = cls()
        return cls(
            read("temp", own.temperature),
            int(read("top_k", own.top_k)),
            read("top_p", own.top_p),
            read("min_p", own.min_p),
        )


class Sampler:
    """One request's sampler. Made in any thread, used in the one that decodes; `close` frees it."""

    def __init__(self, vocab: Vocab, sampling: Sampling, defaults: Defaults, grammar: str | None = None) -> None:
        """Raises BadRequest when llama.cpp refuses the grammar."""
        self._vocab = vocab
        self._chain: Any = native.llama_sampler_chain_init(native.llama_sampler_chain_default_params())
        for link in _links(vocab, sampling, defaults):
            native.llama_sampler_chain_add(self._chain, link)
        self._grammar = _Grammar(vocab, grammar) if grammar else None

    def sample(self, context: Any, row: int, logits: Callable[[int], Logits]) -> int:
        """The next token, from row ``row`` of the batch just decoded."""
        if self._grammar is None:
            return int(native.llama_sampler_sample(self._chain, context, row))
        token = self._grammar.choose(self._chain, logits(row))
        native.llama_sampler_accept(self._chain, token)
        return token

    def close(self) -> None:
        native.llama_sampler_free(self._chain)
        if self._grammar is not None:
            self._grammar.close()


def _links(vocab: Vocab, sampling: Sampling, defaults: Defaults) -> list[Any]:
    """The chain in llama.cpp's order: penalties, top_k, top_p, min_p, temperature, then the draw."""
    links: list[Any] = []
    if sampling.presence_penalty or sampling.frequency_penalty:
        links.append(
            native.llama_sampler_init_penalties(
                vocab.size, _PENALTY_WINDOW, 1.0, sampling.frequency_penalty, sampling.presence_penalty
            )
        )
    temperature = defaults.temperature if sampling.temperature is None else sampling.temperature
    if temperature <= 0:
        return [*links, native.llama_sampler_init_greedy()]
    top_k = defaults.top_k if sampling.top_k is None else sampling.top_k
    top_p = defaults.top_p if sampling.top_p is None else sampling.top_p
    min_p = defaults.min_p if sampling.min_p is None else sampling.min_p
    if top_k > 0:
        links.append(native.llama_sampler_init_top_k(top_k))
    if top_p < 1:
        links.append(native.llama_sampler_init_top_p(max(top_p, 0.0), 1))
    if min_p > 0:
        links.append(native.llama_sampler_init_min_p(min_p, 1))
    seed = _RANDOM_SEED if sampling.seed is None else sampling.seed & 0x7FFFFFFF
    return [*links, native.llama_sampler_init_temp(temperature), native.llama_sampler_init_dist(seed)]


class _Grammar:
    """Forces the answer's form. The whole vocabulary is checked only when the token drawn freely does not fit."""

    _ROW: Final = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data

    def __init__(self, vocab: Vocab, source: str) -> None:
        self._rows = np.zeros(vocab.size, self._ROW)
        self._ids = np.arange(vocab.size, dtype=np.int32)
        self._handle: Any = native.llama_sampler_init_grammar(vocab.handle, source.encode(), b"root")
        if not self._handle:
            raise BadRequest("the JSON schema is too large or too deep for this engine's grammar, or no value fits it")

    def choose(self, chain: Any, logits: Logits) -> int:
        token = self._apply(logits, chain)
        if not self._fits(token):
            token = self._apply(logits, self._handle, chain)
            if not self._fits(token):  # accepting it would abort the process
                raise EngineError("the model has no token that fits the schema asked for")
        native.llama_sampler_accept(self._handle, token)
        return token

    def _apply(self, logits: Logits, *samplers: Any) -> int:
        self._rows["id"], self._rows["logit"] = self._ids, logits
        array = self._array(self._rows)
        for sampler in samplers:
            native.llama_sampler_apply(sampler, ctypes.byref(array))
        return int(self._rows["id"][array.selected])

    def _fits(self, token: int) -> bool:
        one = np.zeros(1, self._ROW)
        one["id"] = token
        array = self._array(one)
        native.llama_sampler_apply(self._handle, ctypes.byref(array))
        return bool(np.isfinite(one["logit"][0]))

    @staticmethod
    def _array(rows: "np.ndarray[tuple[int], Any]") -> Any:
        data = rows.ctypes.data_as(ctypes.POINTER(native.llama_token_data))
        return native.llama_token_data_array(data=data, size=len(rows), selected=-1, sorted=False)

    def close(self) -> None:
        native.llama_sampler_free(self._handle)


def log_probability(logits: Logits, token: int, top: int) -> tuple[float, list[tuple[int, float]]]:
    """log p of ``token`` and of the ``top`` likeliest, as (token, log p), best first."""
    highest = logits.max()
    total = float(highest) + float(np.log(np.exp(logits - highest).sum()))
    best: list[tuple[int, float]] = []
    if top:
        likeliest = np.argpartition(logits, -top)[-top:]
        best = sorted(((int(t), float(logits[t]) - total) for t in likeliest), key=lambda pair: -pair[1])
    return float(logits[token]) - total, best
