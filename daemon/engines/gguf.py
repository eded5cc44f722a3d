"""What a GGUF file says about itself. Reads the header only, and never trusts it to be a model at all.

GGUF 2 and 3 (ggml/docs/gguf.md): magic, version, tensor count, key-value pairs, where each tensor lies, little-endian;
then the tensors, each on a multiple of the alignment.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from math import prod
from pathlib import Path
from typing import BinaryIO, Final

from daemon.core.errors import UsageError

_STRING, _ARRAY = 8, 9
#: Bytes of each scalar type, by its number.
_WIDTH: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_FORMAT: Final = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_LONGEST: Final = 1 << 24  # a chat template has some kilobytes
_ALIGNMENT: Final = 32

F32, F16 = 0, 1  # ggml_type


@dataclass(frozen=True, slots=True)
class Tensor:
    """``shape`` as ggml has it, the fastest dimension first; ``start``: its first byte in the file."""

    shape: tuple[int, ...]
    type: int
    start: int

    @property
    def count(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything in the header but arrays (vocabularies are long): scalars and strings by key, tensors by name."""

    metadata: dict[str, str | int | float | bool]
    tensors: dict[str, Tensor]


def licence(path: Path) -> str | None:
    """What a GGUF model says of its licence (an SPDX id, mostly lower case). Raises UsageError for what is no model,
    saying what it is instead.
    """
    with path.open("rb") as file:
        start = file.read(512)
        if not start.startswith(b"GGUF"):
            raise UsageError(f"{path.name} is {what(start)}, not a GGUF model", hint="only GGUF files can be added")
        file.seek(0)
        try:
            # The tokenizer's come last and are long.
            pairs = takewhile(lambda pair: not pair[0].startswith("tokenizer."), _pairs(file, _head(file)[1]))
            found = {key: value for key, value in pairs if isinstance(value, str)}
        except (struct.error, ValueError, KeyError, OSError, OverflowError) as error:
            raise UsageError(f"{path.name} has a damaged GGUF header ({error})", hint="download it again") from error
    kind = found.get("general.type", "model")
    if kind != "model":
        raise UsageError(f"{path.name} is a GGUF {kind}, not a model", hint="add the base model it belongs to")
    return found.get("general.license")


def contents(path: Path) -> Contents:
    """The whole header of any GGUF file. Raises ValueError with what is wrong, OSError."""
    with path.open("rb") as file:
        start = file.read(512)
        if not start.startswith(b"GGUF"):
            raise ValueError(f"it is {what(start)}, not GGUF")
        file.seek(0)
        try:
            return _contents(file)
        except (struct.error, KeyError, OverflowError) as error:
            raise ValueError(f"its header is damaged ({error})") from error


def _contents(file: BinaryIO) -> Contents:
    tensor_count, count = _head(file)
    metadata = {key: value for key, value in _pairs(file, count) if value is not None}
    found: list[tuple[str, tuple[int, ...], int, int]] = []
    for _ in range(tensor_count):
        name = _string(file).decode("utf-8", "replace")
        (dimensions,) = struct.unpack("<I", file.read(4))
        if dimensions > 4:
            raise ValueError(f"tensor {name!r} has {dimensions} dimensions")
        shape = struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions))
        kind, offset = struct.unpack("<IQ", file.read(12))
        found.append((name, shape, kind, offset))
    data = aligned(file.tell(), int(metadata.get("general.alignment", _ALIGNMENT)))
    return Contents(metadata, {name: Tensor(shape, kind, data + offset) for name, shape, kind, offset in found})


def aligned(position: int, alignment: int = _ALIGNMENT) -> int:
    """The next multiple of the alignment."""
    return -(-position // max(alignment, 1)) * max(alignment, 1)


def what(start: bytes) -> str:
    """What a file that is no GGUF is, by its first bytes."""
    text = start.lstrip().lower()
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer (the clone it comes from was made without its large files)"
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page"
    if start.startswith(b"PK"):
        return "a zip or a PyTorch pickle"
    if start[8:9] == b"{":
        return "a safetensors file"
    return "some other file" if start else "empty"


def _head(file: BinaryIO) -> tuple[int, int]:
    """How many tensors and key-value pairs there are."""
    version, tensors, pairs = struct.unpack("<4xIQQ", file.read(24))
    if version not in (2, 3):
        raise ValueError(f"GGUF version {version} is unknown")
    return tensors, pairs


def _pairs(file: BinaryIO, count: int) -> Iterator[tuple[str, str | int | float | bool | None]]:
    """Key and value, None for an array; that one is passed over only when the next is asked for."""
    for _ in range(count):
        key = _string(file).decode("utf-8", "replace")
        (kind,) = struct.unpack("<I", file.read(4))
        if kind == _STRING:
            yield key, _string(file).decode("utf-8", "replace")
        elif kind == _ARRAY:
            yield key, None
            _skip_array(file)
        else:
            yield key, struct.unpack(_FORMAT[kind], file.read(_WIDTH[kind]))[0]


def _string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _LONGEST:
        raise ValueError(f"a string of {length} bytes")
    return file.read(length)


def _skip_array(file: BinaryIO) -> None:
    inner, length = struct.unpack("<IQ", file.read(12))
    if inner != _STRING:
        file.seek(_WIDTH[inner] * length, 1)
        return
    for _ in range(length):
        _string(file)
