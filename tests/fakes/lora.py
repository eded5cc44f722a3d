"""LoRA adapters that no one trained: random ones for the default model, written by hand as PEFT writes them.

They change what the model says visibly, and each seed otherwise, but teach it nothing.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from daemon.engines.base import LoraFile
from recipes.lora.convert import convert

Tensors = dict[str, npt.NDArray[Any]]

LAYERS = 30
#: (out, in) of SmolLM2-135M's linear layers.
SHAPES = {
    "self_attn.q_proj": (576, 576),
    "self_attn.k_proj": (192, 576),
    "self_attn.v_proj": (192, 576),
    "self_attn.o_proj": (576, 576),
    "mlp.gate_proj": (1536, 576),
    "mlp.up_proj": (1536, 576),
    "mlp.down_proj": (576, 1536),
}
CONFIG = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "base_model_name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct",
    "bias": "none",
    "fan_in_fan_out": False,
    "init_lora_weights": True,
    "lora_dropout": 0.0,
    "modules_to_save": None,
    "rank_pattern": {},
    "alpha_pattern": {},
    "use_dora": False,
    "use_rslora": False,
    "target_modules": [name.partition(".")[2] for name in SHAPES],
}


def peft_directory(
    path: Path,
    *,
    seed: int = 0,
    scale: float = 0.03,
    rank: int = 4,
    config: Mapping[str, Any] | None = None,
    change: Callable[[Tensors], None] | None = None,
) -> Path:
    """A PEFT LoRA directory at ``path``. ``scale`` of B: 0 changes nothing, 0.03 some words, 0.3 everything.
    ``config`` and ``change`` spoil the settings and the tensors."""
    rng = np.random.default_rng(seed)
    tensors: Tensors = {}
    for layer in range(LAYERS):
        for module, (outer, inner) in SHAPES.items():
            name = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{name}.lora_A.weight"] = (rng.standard_normal((rank, inner)) / inner**0.5).astype(np.float32)
            tensors[f"{name}.lora_B.weight"] = (rng.standard_normal((outer, rank)) * scale).astype(np.float32)
    if change is not None:
        change(tensors)
    path.mkdir(parents=True, exist_ok=True)
    settings = {**CONFIG, "r": rank, "lora_alpha": 2 * rank, **(config or {})}
    (path / "adapter_config.json").write_text(json.dumps(settings))
    (path / "adapter_model.safetensors").write_bytes(safetensors(tensors))
    return path


def safetensors(tensors: Tensors, dtype: str | None = None) -> bytes:
    """``dtype`` names another one than numpy's, for what numpy has no name for."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    names, position = {"<f4": "F32", "<f2": "F16", "<f8": "F64"}, 0
    for name, value in tensors.items():
        kind = dtype or names[value.dtype.str]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [position, position + value.nbytes]}
        position += value.nbytes
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + b"".join(value.tobytes() for value in tensors.values())


def lora_file(model: Path, folder: Path, *, base: str | None = None, **settings: Any) -> LoraFile:
    """A converted adapter for ``model``, ready to serve. ``base``: its sha256, where the caller knows it;
    ``settings`` are `peft_directory`'s."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = convert(peft_directory(folder / "peft", **settings), model, folder / "adapter.gguf")
    if base is None:
        with model.open("rb") as file:
            base = hashlib.file_digest(file, "sha256").hexdigest()
    return LoraFile(folder / "adapter.gguf", facts.sha256, base)
