"""One loaded model for all tests of the worker's inner parts; they run here, in the tests' own process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.model import Model, NativeLog


@pytest.fixture(scope="session")
def model(model_path: Path) -> Iterator[Model]:
    """Without the kernels that fault on some processors: here nothing restarts a process that they end."""
    spec = WorkerSpec(str(model_path), "smollm2", "5a" * 32, None, 1, 1, plain=True)
    model = Model(spec, NativeLog(), lambda _: None)
    yield model
    model.close()
