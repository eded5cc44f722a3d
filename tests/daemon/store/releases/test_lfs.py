"""LFS objects and pointers, against the real git-lfs."""

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from daemon.core.errors import BadWeights
from daemon.store.releases.lfs import Objects, Pointer, is_large, parse

CONTENT = b"GGUF" + bytes(range(256)) * 5000


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "adapter.gguf"
    path.write_bytes(CONTENT)
    return path


def test_the_pointer_is_git_lfs_own(objects: Objects, source: Path) -> None:
    pointer = objects.put(source)
    made = subprocess.run(["git", "lfs", "pointer", f"--file={source}"], capture_output=True, check=True).stdout
    assert pointer.dump() == made
    assert parse(made) == pointer == Pointer(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


def test_an_object_is_read_only_and_leaves_nothing_beside_it(objects: Objects, source: Path, tmp_path: Path) -> None:
    path = objects.whole(objects.put(source))
    assert (path.read_bytes(), path.stat().st_mode & 0o777, path.stat().st_nlink) == (CONTENT, 0o444, 1)
    assert [left for left in (tmp_path / "store/lfs/tmp").iterdir()] == []


def test_a_link_or_a_fifo_is_no_weights(objects: Objects, source: Path, tmp_path: Path) -> None:
    (tmp_path / "link.gguf").symlink_to(source)
    os.mkfifo(tmp_path / "fifo.gguf")
    for name in ("link.gguf", "fifo.gguf"):
        with pytest.raises(BadWeights, match=f"{name} is no plain file"):
            objects.put(tmp_path / name)


def test_putting_it_again_mends_a_damaged_object(objects: Objects, source: Path) -> None:
    pointer = objects.put(source)
    path = objects.path(pointer.oid)
    path.chmod(0o644)
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(BadWeights, match=f"damaged: {len(CONTENT) - 1} bytes of {len(CONTENT)}"):
        objects.whole(pointer)
    assert objects.put(source) == pointer
    assert objects.whole(pointer).read_bytes() == CONTENT


def test_a_pointer_or_nothing_is_no_weights(objects: Objects, tmp_path: Path) -> None:
    path = tmp_path / "adapter.gguf"
    path.write_bytes(Pointer("a" * 64, 3).dump())
    with pytest.raises(BadWeights, match="is a Git LFS pointer"):
        objects.put(path)
    path.write_bytes(b"")
    with pytest.raises(BadWeights, match="is empty"):
        objects.put(path)
    with pytest.raises(BadWeights, match="no weights at"):
        objects.put(tmp_path / "nothing")


@pytest.mark.parametrize(
    "content",
    [b"", b"GGUF", Pointer("a" * 64, 3).dump() + b"\n", Pointer("A" * 64, 3).dump(), Pointer("a" * 63, 3).dump(),
     Pointer("a" * 64, 3).dump().replace(b"sha256", b"sha1"), Pointer("a" * 64, -3).dump()],
)  # fmt: skip
def test_only_a_pointer_is_a_pointer(content: bytes) -> None:
    assert parse(content) is None


def test_weights_are_large_and_texts_are_not() -> None:
    assert is_large("weights/adapter.gguf")
    assert is_large("weights/peft/adapter_model.safetensors")
    assert not is_large("weights/peft/adapter_config.json")
    assert not is_large("harness/rules.md")


def test_only_what_a_killed_copy_left_long_ago_is_swept(objects: Objects, source: Path, tmp_path: Path) -> None:
    objects.sweep()
    pointer = objects.put(source)
    old, new = (tmp_path / "store/lfs/tmp" / name for name in ("1-1", "2-2"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 90_000,) * 2)
    objects.sweep()
    assert (old.exists(), new.exists()) == (False, True)
    objects.whole(pointer)
