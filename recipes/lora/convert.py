"""A PEFT LoRA adapter to a GGUF one, as llama.cpp loads it. Needs numpy alone: no torch, in no time.

Whatever this cannot carry over exactly is refused by name, since an adapter that is only nearly right still answers.
Rules, of llama.cpp's convert_lora_to_gguf.py: llama.cpp scales by alpha / rank, tensors are ``NAME.lora_a`` [rank, in]
and ``NAME.lora_b`` [out, rank], and of q and k the rows of B are in the order of its rotary embedding.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from daemon.core.errors import BadWeights
from daemon.core.paths import sha256_of, write_private
from daemon.engines import gguf

Array = npt.NDArray[np.float32]

#: Module of a transformers Llama → tensor of a llama.cpp "llama". Other architectures are not proven against PEFT.
_MODULES: Final = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_NAME: Final = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(\w+\.\w+)\.lora_(A|B)(?:\.default)?\.weight")
_DTYPES: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
#: Settings that change what the adapter means; GGUF has no words for them.
_UNKNOWN_TO_GGUF: Final = (
    "use_dora", "use_qalora", "use_bdlora", "lora_bias", "fan_in_fan_out", "modules_to_save", "rank_pattern",
    "alpha_pattern", "layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoraFacts:
    """What was written: ``alpha`` as llama.cpp reads it (scale = alpha / rank), ``sha256`` of the file."""

    rank: int
    alpha: float
    tensors: int
    sha256: str
    bytes: int


def convert(peft: Path, base_gguf: Path, out: Path) -> LoraFacts:
    """Write ``out``, a GGUF LoRA adapter for ``base_gguf``, from a PEFT directory (adapter_config.json and
    adapter_model.safetensors). The same input gives the same bytes. Raises BadWeights, naming what is wrong and where.
    """
    rank, alpha = _settings(_config(peft / "adapter_config.json"))
    try:
        base = gguf.contents(base_gguf)
    except (OSError, ValueError) as error:
        raise BadWeights(f"{base_gguf.name} is no base model: {error}", hint="reef models list") from error
    architecture = base.metadata.get("general.architecture")
    if architecture != "llama":
        raise BadWeights(
            f"LoRA adapters of the architecture {architecture!r} cannot be converted, only those of 'llama'",
            hint="train on a Llama-like model, such as the default one",
        )
    tensors = {name: value for name, value in _tensors(peft / "adapter_model.safetensors", base, rank)}
    if not tensors:
        raise BadWeights("adapter_model.safetensors holds no tensor")
    for name in tensors:
        other = name[:-1] + ("b" if name.endswith("a") else "a")
        if other not in tensors:
            raise BadWeights(f"{name} has no {other} beside it")
    metadata: dict[str, str | float] = {
        "general.architecture": architecture,
        "general.type": "adapter",
        "adapter.type": "lora",
        "adapter.lora.alpha": alpha,
        "reef.base_sha256": sha256_of(base_gguf),
    }
    data = _gguf(metadata, tensors)
    write_private(out, data)
    return LoraFacts(rank, alpha, len(tensors), hashlib.sha256(data).hexdigest(), len(data))


def _config(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadWeights(f"{path.name} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise BadWeights(f"{path.name} is no JSON object")
    return config


def _settings(config: Mapping[str, Any]) -> tuple[int, float]:
    """Rank and llama.cpp's alpha."""
    if config.get("peft_type") != "LORA":
        raise BadWeights(f"peft_type is {config.get('peft_type')!r}, not 'LORA'")
    for key in _UNKNOWN_TO_GGUF:
        if config.get(key):
            raise BadWeights(f"{key} is {config[key]!r}, which a GGUF adapter cannot say", hint="train without it")
    if config.get("bias", "none") != "none":
        raise BadWeights(f"bias is {config['bias']!r}, not 'none'", hint="train without biases")
    start = config.get("init_lora_weights", True)
    if start not in (True, False, "gaussian"):  # the others change the base model's weights too
        raise BadWeights(f"init_lora_weights is {start!r}, which changes the base model as well")
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if not isinstance(rank, int) or rank < 1:
        raise BadWeights(f"r is {rank!r}, not a rank")
    if not isinstance(alpha, int | float) or not math.isfinite(alpha) or alpha <= 0:
        raise BadWeights(f"lora_alpha is {alpha!r}, not a positive number")
    return rank, float(alpha * math.sqrt(rank) if config.get("use_rslora") else alpha)


def _tensors(path: Path, base: gguf.Contents, rank: int) -> Iterator[tuple[str, npt.NDArray[np.float16]]]:
    """llama.cpp's name and value of each tensor, in the order of their names."""
    heads = {"attn_q": _number(base, "head_count"), "attn_k": _number(base, "head_count_kv")}
    for name, value in sorted(_safetensors(path)):
        match = _NAME.fullmatch(name)
        if match is None or match[2] not in _MODULES:
            raise BadWeights(f"{name} belongs to no module that can be converted", hint="train on the linear layers")
        layer, module, side = match[1], _MODULES[match[2]], match[3]
        target = f"blk.{layer}.{module}.weight"
        if target not in base.tensors:
            raise BadWeights(f"{name}: the base model has no {target}")
        inner, outer = base.tensors[target].shape
        wanted = (rank, inner) if side == "A" else (outer, rank)
        if value.shape != wanted:
            raise BadWeights(f"{name} has the shape {value.shape}, the base model needs {wanted}")
        if side == "B" and module in heads:
            value = _rotary(value, heads[module])
        with np.errstate(over="ignore"):
            half = np.ascontiguousarray(value, np.float16)
        if not np.isfinite(half).all():
            raise BadWeights(f"{name} holds {'NaN' if np.isnan(half).any() else 'a value beyond 16-bit floats'}")
        yield f"{target}.lora_{side.lower()}", half


def _number(base: gguf.Contents, key: str) -> int:
    value = base.metadata.get(f"llama.attention.{key}")
    if not isinstance(value, int) or value < 1:
        raise BadWeights(f"the base model's {key} is {value!r}, not one number")
    return value


def _rotary(value: Array, heads: int) -> Array:
    """Rows of each head from halves (transformers turns i with i + d/2) to pairs (llama.cpp turns 2i with 2i + 1)."""
    rows, rank = value.shape
    return value.reshape(heads, 2, rows // heads // 2, rank).swapaxes(1, 2).reshape(rows, rank)


def _safetensors(path: Path) -> Iterator[tuple[str, Array]]:
    """Tensors of a safetensors file: a length (64 bits), a JSON header of that length, then the values."""
    try:
        data = path.read_bytes()
        size = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        values = memoryview(data)[8 + size :]
        for name, entry in header.items():
            start, end = entry["data_offsets"]
            raw = np.frombuffer(values[start:end], _dtype(name, entry))
            yield name, _floats(raw, entry["dtype"]).reshape(entry["shape"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise BadWeights(f"{path.name} is missing, truncated or no safetensors file ({error})") from error


def _dtype(name: str, entry: Mapping[str, Any]) -> str:
    if entry["dtype"] not in _DTYPES:
        raise BadWeights(f"{name} holds {entry['dtype']}, not floating-point numbers")
    return _DTYPES[entry["dtype"]]


def _floats(raw: npt.NDArray[Any], dtype: str) -> Array:
    if dtype == "BF16":  # the upper half of a 32-bit float
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32)


def _gguf(metadata: Mapping[str, str | float], tensors: Mapping[str, npt.NDArray[np.float16]]) -> bytes:
    """A GGUF 3 file: strings and 32-bit floats in its header, 16-bit tensors."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    header = [b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        is_text = isinstance(value, str)
        header += [text(key), struct.pack("<I", 8 if is_text else 6)]
        header.append(text(value) if isinstance(value, str) else struct.pack("<f", value))
    offset = 0
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]  # ggml names the fastest dimension first
        header += [text(name), struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, gguf.F16, offset)]
        offset = gguf.aligned(offset + tensor.nbytes)
    parts = [_padded(b"".join(header)), *(_padded(tensor.tobytes()) for tensor in tensors.values())]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data.ljust(gguf.aligned(len(data)), b"\0")
