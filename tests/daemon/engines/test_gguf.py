from pathlib import Path

import pytest

from daemon.core.errors import UsageError
from daemon.engines.gguf import read
from tests.fakes import gguf


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return path


def test_the_header_tells_name_architecture_and_licence(tmp_path: Path) -> None:
    header = read(written(tmp_path, gguf.make(licence="apache-2.0")))
    assert (header.architecture, header.name, header.licence) == ("llama", "Tiny", "apache-2.0")


def test_a_model_may_say_nothing_of_its_licence(tmp_path: Path) -> None:
    assert read(written(tmp_path, gguf.make(licence=None))).licence is None


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
        read(written(tmp_path, data))


@pytest.mark.parametrize("length", [4, 20, 24, 60, 130])
def test_a_header_that_was_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(UsageError, match="damaged GGUF header"):
        read(written(tmp_path, gguf.make()[:length]))


def test_an_absurd_length_is_refused_without_reading_it(tmp_path: Path) -> None:
    data = bytearray(gguf.make())
    data[24:32] = b"\xff" * 8  # the length of the first key
    with pytest.raises(UsageError, match="damaged GGUF header"):
        read(written(tmp_path, bytes(data)))


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    data = bytearray(gguf.make())
    data[4:8] = b"\x01\x00\x00\x00"
    with pytest.raises(UsageError, match="version 1"):
        read(written(tmp_path, bytes(data)))


def test_a_lora_adapter_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GGUF adapter"):
        read(written(tmp_path, gguf.make(kind="adapter")))


@pytest.mark.engine
def test_the_default_model_is_read(model_path: Path) -> None:
    header = read(model_path)
    assert header.architecture == "llama"
    assert header.licence == "apache-2.0"
