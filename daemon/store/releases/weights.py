"""A candidate's weights as files of its release: the adapter that llama.cpp loads, and PEFT's two beside it."""

import hashlib
from pathlib import Path
from typing import Annotated, Final

import msgspec

from daemon.core.errors import BadWeights
from daemon.core.paths import open_plain
from daemon.core.releases import Candidate, Weights
from daemon.store.releases import lfs
from daemon.store.releases.objects import Writer

LORA_PATH: Final = "weights/adapter.gguf"
_PEFT: Final = "weights/peft/adapter_model.safetensors"
_PEFT_CONFIG: Final = "weights/peft/adapter_config.json"
_WEIGHTS: Final = (LORA_PATH, _PEFT, _PEFT_CONFIG)
_LARGEST_CONFIG: Final = 100_000
_Number = Annotated[float, msgspec.Meta(ge=0, lt=1 << 31)]


class _Peft(msgspec.Struct):
    """What is read of PEFT's configuration."""

    r: _Number = 0.0
    lora_alpha: _Number = 0.0


def _peft_config(path: Path) -> tuple[bytes, int, float]:
    """Its bytes, rank and alpha."""
    try:
        with open_plain(path) as file:
            raw = file.read(_LARGEST_CONFIG)  # a longer one is cut, and so no JSON
        settings = msgspec.json.decode(raw, type=_Peft)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise BadWeights(f"{path} is not PEFT's configuration: {error}") from error
    return raw, int(settings.r), settings.lora_alpha


def put_weights(
    candidate: Candidate, writer: Writer, objects: lfs.Objects, *, blobs: dict[str, str], files: dict[str, str]
) -> Weights:
    """Put them in the place of the incumbent's, in path → blob and path → sha256. Raises BadWeights, StoreError."""
    assert candidate.lora is not None
    if candidate.base is None:
        raise BadWeights(f"job {candidate.job} does not say which model its weights belong to")
    for path in _WEIGHTS:
        blobs.pop(path, None)
        files.pop(path, None)

    def put(path: str, source: Path) -> tuple[str, int]:
        pointer = objects.put(source)
        blobs[path], files[path] = writer.blob(pointer.dump()), pointer.oid
        return pointer.oid, pointer.size

    oid, size = put(LORA_PATH, Path(candidate.lora))
    peft, rank, alpha = None, 0, 0.0
    if candidate.peft is not None:
        peft, _ = put(_PEFT, Path(candidate.peft) / "adapter_model.safetensors")
        raw, rank, alpha = _peft_config(Path(candidate.peft) / "adapter_config.json")
        blobs[_PEFT_CONFIG], files[_PEFT_CONFIG] = writer.blob(raw), hashlib.sha256(raw).hexdigest()
    return Weights(oid, candidate.base, size, rank, alpha, peft)
