"""What a LoRA file must be before it serves, with the real model's digest and damaged files of every kind."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daemon.core.errors import BadWeights
from daemon.engines.base import LoraFile
from daemon.engines.gguf import contents
from daemon.engines.llama.context import Context
from daemon.engines.llama.lora import Adapter, check
from daemon.engines.llama.model import Model
from tests.fakes.lora import lora_file

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def good(model_path: Path, model: Model, tmp_path_factory: pytest.TempPathFactory) -> LoraFile:
    """An adapter for the test model, whose digest is made up: so is what the file says of its base."""
    made = lora_file(model_path, tmp_path_factory.mktemp("lora"), seed=1)
    data = made.path.read_bytes().replace(made.base.encode(), model.digest.encode())
    return written(made.path, data, model.digest)


def written(path: Path, data: bytes, base: str) -> LoraFile:
    path.write_bytes(data)
    return LoraFile(path, hashlib.sha256(data).hexdigest(), base)


@pytest.fixture
def context(model: Model) -> Iterator[Any]:
    made: list[Context] = []

    def make(adapter: Adapter | None) -> Context:
        made.append(Context(model, limit=64, parallel=1, threads=1, adapter=adapter))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_an_adapter_that_is_what_it_says_passes_and_changes_the_probe(
    good: LoraFile, model: Model, context: Any
) -> None:
    check(good, model)
    alone, changed = context(None), context(Adapter(model, good))
    assert np.abs(alone.probe() - changed.probe()).mean() > 0.05
    assert (alone.weights, changed.weights) == (model.digest, f"{model.digest}+{good.sha256}")


def test_a_file_that_is_not_there_is_named(model: Model, good: LoraFile, tmp_path: Path) -> None:
    with pytest.raises(BadWeights, match=r"gone.gguf cannot be read: No such file"):
        check(LoraFile(tmp_path / "gone.gguf", good.sha256, good.base), model)


def test_a_git_lfs_pointer_is_called_one(model: Model, tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2471072\n"
    with pytest.raises(BadWeights, match="Git LFS pointer"):
        check(written(tmp_path / "a.gguf", pointer, model.digest), model)


def test_another_content_than_the_name_says_is_refused(good: LoraFile, model: Model, tmp_path: Path) -> None:
    data = bytearray(good.path.read_bytes())
    data[-100] ^= 1
    (tmp_path / "a.gguf").write_bytes(data)
    with pytest.raises(BadWeights, match="truncated or was changed") as refused:
        check(LoraFile(tmp_path / "a.gguf", good.sha256, good.base), model)
    assert refused.value.hint


@pytest.mark.parametrize("size", [100, 30_000, 2_000_000])
def test_a_truncated_file_is_refused_even_where_its_name_agrees(
    good: LoraFile, model: Model, tmp_path: Path, size: int
) -> None:
    part = written(tmp_path / "a.gguf", good.path.read_bytes()[:size], good.base)
    with pytest.raises(BadWeights, match=r"truncated|damaged"):
        check(part, model)


def test_an_adapter_of_another_model_is_refused(good: LoraFile, model: Model, tmp_path: Path) -> None:
    with pytest.raises(BadWeights, match=r"trained on abab.*5a5a"):
        check(LoraFile(good.path, good.sha256, "ab" * 32), model)
    other = good.path.read_bytes().replace(model.digest.encode(), b"cd" * 32)
    with pytest.raises(BadWeights, match=r"trained on cdcd.*5a5a"):
        check(written(tmp_path / "a.gguf", other, model.digest), model)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"llama", b"qwen2", "general.architecture is 'qwen2', not 'llama'"),
        (b"adapter", b"model\0\0", "general.type"),
        (b"lora", b"loha", "adapter.type is 'loha'"),
        (b"reef.base_sha256", b"somebodys.sha256", "nobody knows"),
    ],
)
def test_what_the_file_says_of_itself_must_fit(
    good: LoraFile, model: Model, tmp_path: Path, old: bytes, new: bytes, said: str
) -> None:
    data = good.path.read_bytes()
    at = data.index(b"\x08\0\0\0" + len(old).to_bytes(8, "little") + old) + 4 if b"." not in old else 0
    changed = data[:at] + data[at:].replace(old, new, 1)
    with pytest.raises(BadWeights, match=said):
        check(written(tmp_path / "a.gguf", changed, model.digest), model)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_found_and_named(
    good: LoraFile, model: Model, tmp_path: Path, value: float
) -> None:
    data = bytearray(good.path.read_bytes())
    tensor = contents(good.path).tensors["blk.17.ffn_up.weight.lora_b"]
    at = tensor.start + 2 * (tensor.count - 1)
    data[at : at + 2] = np.float16(value).tobytes()
    with pytest.raises(BadWeights, match=r"blk.17.ffn_up.weight.lora_b holds NaN or infinite"):
        check(written(tmp_path / "a.gguf", bytes(data), model.digest), model)


def test_numbers_of_another_kind_are_refused(good: LoraFile, model: Model, tmp_path: Path) -> None:
    data = good.path.read_bytes()
    name = b"blk.0.attn_q.weight.lora_a"
    at = data.index(name) + len(name) + 4 + 16  # the number of dimensions, two of them, then the type
    changed = data[:at] + (8).to_bytes(4, "little") + data[at + 4 :]
    with pytest.raises(BadWeights, match="ggml's type 8"):
        check(written(tmp_path / "a.gguf", changed, model.digest), model)


def test_tensors_that_lie_over_each_other_are_refused(good: LoraFile, model: Model, tmp_path: Path) -> None:
    """A small file could make its reader read for days."""
    data, tensors = bytearray(good.path.read_bytes()), contents(good.path).tensors
    whole = (len(data) - min(tensor.start for tensor in tensors.values())) // 2
    for name in tensors:
        at = data.index(len(name).to_bytes(8, "little") + name.encode()) + 8 + len(name) + 4
        data[at : at + 16] = whole.to_bytes(8, "little") + (1).to_bytes(8, "little")
        data[at + 20 : at + 28] = bytes(8)  # each is the whole file
    with pytest.raises(BadWeights, match="lie over each other"):
        check(written(tmp_path / "a.gguf", bytes(data), model.digest), model)


def test_what_llama_cpp_refuses_is_refused_with_its_reason(good: LoraFile, model: Model, tmp_path: Path) -> None:
    data = good.path.read_bytes().replace(b"blk.0.attn_q", b"blk.0.attn_x")
    odd = written(tmp_path / "a.gguf", data, model.digest)
    check(odd, model)
    with pytest.raises(BadWeights, match=r"llama.cpp refuses .*attn_x"):
        Adapter(model, odd)
