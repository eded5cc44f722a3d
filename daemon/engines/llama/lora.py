"""LoRA adapters in the worker: what a file must be before llama.cpp sees it, and llama.cpp's handle of it.

An adapter of other weights, or a damaged one, would still answer, only wrongly; so everything is checked, and nothing
is taken on trust but that a file checked once is not rewritten in place (releases are read-only).
"""

import ctypes
from collections.abc import Iterator
from typing import Any, Final

import llama_cpp as native
import numpy as np

from daemon.core.errors import BadWeights
from daemon.core.paths import sha256_of
from daemon.engines import gguf
from daemon.engines.base import LoraFile
from daemon.engines.llama.model import Model

_DTYPES: Final[dict[int, np.dtype[Any]]] = {gguf.F32: np.dtype("<f4"), gguf.F16: np.dtype("<f2")}
_CHUNK: Final = 1 << 22
_AGAIN: Final = "reef releases rollback, or train again"


class Adapter:
    """A LoRA adapter that llama.cpp has read. Contexts that use it must be gone before `close`."""

    def __init__(self, model: Model, lora: LoraFile) -> None:
        model.log.clear()
        self._handle: Any = native.llama_adapter_lora_init(model.handle, str(lora.path).encode())
        if not self._handle:  # a NULL pointer is an object: only its truth tells
            raise BadWeights(f"llama.cpp refuses {lora.path}: {model.log.reason()}", hint="reef logs")
        self.lora = lora

    def attach(self, context: Any) -> None:
        """Let everything that ``context`` computes from now on be with this adapter, and it alone."""
        handles = (native.llama_adapter_lora_p_ctypes * 1)(self._handle)
        code = native.llama_set_adapters_lora(context, handles, 1, (ctypes.c_float * 1)(1.0))
        if code:
            raise BadWeights(f"llama.cpp cannot use {self.lora.path} (code {code})", hint="reef logs")

    def close(self) -> None:
        native.llama_adapter_lora_free(self._handle)


def check(lora: LoraFile, model: Model) -> None:
    """Read the whole file: is it what its name says, for this model, whole, and finite? Raises BadWeights."""
    if lora.base != model.digest:
        raise _foreign(lora.path.name, lora.base, model)
    try:
        contents = gguf.contents(lora.path)
        size = lora.path.stat().st_size
        digest = sha256_of(lora.path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadWeights(f"the LoRA adapter {lora.path} cannot be read: {reason}", hint=_AGAIN) from error
    if digest != lora.sha256:
        raise BadWeights(
            f"{lora.path} is truncated or was changed: its {size} bytes have the sha256 {digest[:12]}…, "
            f"not {lora.sha256[:12]}…",
            hint=_AGAIN,
        )
    _check_metadata(lora, contents, model)
    _check_tensors(lora, contents, size)


def _check_metadata(lora: LoraFile, contents: gguf.Contents, model: Model) -> None:
    said = contents.metadata
    for key, wanted in (
        ("general.type", "adapter"),
        ("adapter.type", "lora"),
        ("general.architecture", model.metadata("general.architecture")),
    ):
        if said.get(key) != wanted:
            raise BadWeights(f"{lora.path}: {key} is {said.get(key)!r}, not {wanted!r}", hint=_AGAIN)
    if said.get("reef.base_sha256") != model.digest:
        raise _foreign(lora.path.name, str(said.get("reef.base_sha256", "nobody knows what")), model)


def _foreign(name: str, base: str, model: Model) -> BadWeights:
    return BadWeights(
        f"the LoRA adapter {name} was trained on {base[:12]}…, and {model.name!r} is {model.digest[:12]}…",
        hint="reef models use, with the model that it was trained on; or train again",
    )


def _check_tensors(lora: LoraFile, contents: gguf.Contents, size: int) -> None:
    if not contents.tensors:
        raise BadWeights(f"{lora.path} holds no tensor", hint=_AGAIN)
    left = size  # no two tensors share a byte, or reading them could take for ever
    with lora.path.open("rb") as file:
        for name, tensor in contents.tensors.items():
            kind = _DTYPES.get(tensor.type)
            if kind is None:
                raise BadWeights(f"{lora.path}: {name} is of ggml's type {tensor.type}, neither 16- nor 32-bit floats")
            if tensor.start + tensor.count * kind.itemsize > size:
                raise BadWeights(f"{lora.path} is truncated: {name} ends beyond its {size} bytes", hint=_AGAIN)
            left -= tensor.count * kind.itemsize
            if left < 0:
                raise BadWeights(f"{lora.path} is damaged: its tensors lie over each other", hint=_AGAIN)
            file.seek(tensor.start)
            for part in _chunks(file, tensor.count * kind.itemsize):
                if not np.isfinite(np.frombuffer(part, kind)).all():
                    raise BadWeights(f"{lora.path}: {name} holds NaN or infinite numbers", hint=_AGAIN)


def _chunks(file: Any, size: int) -> Iterator[bytes]:
    """Of whole numbers: an adapter of a large model has gigabytes."""
    while size > 0:
        part = file.read(min(size, _CHUNK))
        if not part:
            return
        size -= len(part)
        yield part
