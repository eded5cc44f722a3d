"""Weights of gigabytes: published, read back and pulled by git-lfs without entering memory whole."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.conftest import ROOT
from tests.fakes import gguf

SIZE = 2 << 30
#: What it may add to a process, in MB; a block is one.
ROOM = 64


def weights(folder: Path, size: int) -> Path:
    """Sparse but for some blocks: what is read is not."""
    (folder / "peft").mkdir(parents=True)
    with (folder / "adapter.gguf").open("wb") as file:
        file.write(gguf.make(kind="adapter"))
        for place in range(1 << 20, size, size // 64):
            file.seek(place)
            file.write(os.urandom(4096))
        file.truncate(size)
    (folder / "peft/adapter_model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    (folder / "peft/adapter_config.json").write_text(json.dumps({"r": 8, "lora_alpha": 16}))
    return folder


@pytest.mark.slow
def test_two_gigabytes_are_published_and_pulled_block_by_block(reef_home: Home, tmp_path: Path) -> None:
    made = weights(tmp_path / "w", SIZE)
    words = [sys.executable, "-m", "tests.daemon.store.releases.weighing", str(reef_home.root), str(made)]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split(maxsplit=3)
    before, after, git = map(int, told[:3])
    assert after - before < ROOM
    assert git < before + ROOM
    stored = Path(told[3].strip())
    assert (stored.stat().st_size, stored.is_relative_to(reef_home.releases)) == (SIZE, True)
    made.joinpath("adapter.gguf").unlink()

    clone, _, pull = Releases.open(reef_home).clone_commands("default", tmp_path / "copy")
    environment = {**os.environ, "GIT_LFS_SKIP_SMUDGE": "1"}
    subprocess.run(clone, check=True, capture_output=True, env=environment)
    measured = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)"
    )
    subprocess.run(["git", "-C", str(tmp_path / "copy"), "lfs", "install", "--local"], check=True, capture_output=True)
    pulled = subprocess.run([sys.executable, "-c", measured, *pull], capture_output=True, check=True, text=True)
    assert int(pulled.stdout.split()[-1]) < 2 * ROOM
    with (tmp_path / "copy/weights/adapter.gguf").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == stored.name
    print(f"publish: {after} MB ({before} before), its git {git} MB; git lfs pull: {pulled.stdout.split()[-1]} MB")
