import struct
from pathlib import Path

import gguf as reference
import pytest

from daemon.core.errors import UsageError
from daemon.engines.gguf import F16, Tensor, aligned, contents, licence
from tests.fakes import gguf


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return path


def test_the_header_tells_the_licence(tmp_path: Path) -> None:
    assert licence(written(tmp_path, gguf.make(licence="apache-2.0"))) == "apache-2.0"


def test_a_model_may_say_nothing_of_its_licence(tmp_path: Path) -> None:
    assert licence(written(tmp_path, gguf.make(licence=None))) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"),
        (b"\n<!DOCTYPE html><html>Sign in</html>", "a web page"),
        (b"PK\x03\x04archive/data.pkl", "PyTorch pickle"),
        (b"\x40\x00\x00\x00\x00\x00\x00\x00" + b'{"weight":{"dtype":"F32"}}', "a safetensors file"),
        (b"", "empty"),
        (b"what is this", "some other file"),
    ],
)
def test_what_is_no_model_is_refused_by_what_it_is(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        licence(written(tmp_path, data))


@pytest.mark.parametrize("length", [4, 20, 24, 60, 130])
def test_a_header_that_was_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(UsageError, match="damaged GGUF header"):
        licence(written(tmp_path, gguf.make()[:length]))


def test_an_absurd_length_is_refused_without_reading_it(tmp_path: Path) -> None:
    data = bytearray(gguf.make())
    data[24:32] = b"\xff" * 8  # the length of the first key
    with pytest.raises(UsageError, match="damaged GGUF header"):
        licence(written(tmp_path, bytes(data)))


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    data = bytearray(gguf.make())
    data[4:8] = b"\x01\x00\x00\x00"
    with pytest.raises(UsageError, match="version 1"):
        licence(written(tmp_path, bytes(data)))


@pytest.mark.parametrize("length", [1 << 62, (1 << 64) - 1])
def test_an_array_beyond_every_file_is_refused(tmp_path: Path, length: int) -> None:
    pair = struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 12, length)
    path = written(tmp_path, b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + pair)
    with pytest.raises(UsageError, match="damaged GGUF header"):
        licence(path)
    with pytest.raises((ValueError, OSError)):
        contents(path)


def test_a_lora_adapter_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GGUF adapter"):
        licence(written(tmp_path, gguf.make(kind="adapter")))


@pytest.mark.engine
def test_the_default_model_is_read(model_path: Path) -> None:
    assert licence(model_path) == "apache-2.0"


def test_contents_are_scalars_strings_and_where_tensors_lie(tmp_path: Path) -> None:
    head = gguf.make(size=0)
    name = b"blk.0.attn_q.weight"
    tensor = struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 8, 3, F16, 64)
    found = contents(written(tmp_path, head[:8] + struct.pack("<Q", 1) + head[16:] + tensor))
    assert found.metadata["general.architecture"] == "llama"
    assert found.metadata["general.file_type"] == 3
    assert "general.languages" not in found.metadata
    data = aligned(len(head) + len(tensor))
    assert found.tensors == {"blk.0.attn_q.weight": Tensor((8, 3), F16, data + 64)}
    assert found.tensors["blk.0.attn_q.weight"].count == 24


def test_contents_of_the_real_model_agree_with_the_reference_reader(model_path: Path) -> None:
    found = contents(model_path)
    tensors = reference.GGUFReader(str(model_path)).tensors
    assert {name: (one.start, one.shape) for name, one in found.tensors.items()} == {
        tensor.name: (tensor.data_offset, tuple(tensor.shape.tolist())) for tensor in tensors
    }
    assert found.metadata["llama.attention.head_count_kv"] == 3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (gguf.make()[:60], "its header is damaged"),
        (b"GGUF\x01" + gguf.make()[5:], "version 1"),
        (b"GGUF\x03\0\0\0" + struct.pack("<QQQ", 1, 0, 0) + struct.pack("<I", 9), "9 dimensions"),
    ],
)
def test_contents_say_what_is_wrong(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        contents(written(tmp_path, data))
