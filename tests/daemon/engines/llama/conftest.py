"""One loaded model for all tests of the worker's inner parts; they run here, in the tests' own process."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.engines.base import LoraFile
from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.model import Model, NativeLog
from tests.fakes.lora import Tensors, lora_file


@pytest.fixture(scope="session")
def model(model_path: Path) -> Iterator[Model]:
    """Without the kernels that fault on some processors: here nothing restarts a process that they end."""
    spec = WorkerSpec(str(model_path), "smollm2", "5a" * 32, None, 1, 1, plain=True)
    model = Model(spec, NativeLog(), lambda _: None)
    yield model
    model.close()


@pytest.fixture(scope="session")
def new_lora(model_path: Path, model: Model, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., LoraFile]:
    """Adapters for the test model, whose digest is made up."""

    def make(seed: int = 1, scale: float = 0.1, change: Callable[[Tensors], None] | None = None) -> LoraFile:
        made = lora_file(model_path, tmp_path_factory.mktemp("lora"), seed=seed, scale=scale, change=change)
        data = made.path.read_bytes().replace(made.base.encode(), model.digest.encode())
        made.path.write_bytes(data)
        return LoraFile(made.path, hashlib.sha256(data).hexdigest(), model.digest)

    return make
