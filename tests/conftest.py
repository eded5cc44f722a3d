"""What every test may use: a home, a port, the real model, and a watch on the event loop."""

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests import default_model

ROOT = Path(__file__).parents[1]

# Daemons and engines that a test starts run from anywhere; they must find this clone, not an installed package.
os.environ["PYTHONPATH"] = str(ROOT)


@dataclass(slots=True)
class LoopLag:
    """``worst``: the longest time, in seconds, that the event loop was late."""

    worst: float = 0.0


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The default model: ``REEF_TEST_MODEL``, or what ``tests/check`` fetched."""
    path = default_model.cached()
    assert path is not None, "no model to test with: run tests/check once, or set REEF_TEST_MODEL to a GGUF file"
    return path


@pytest.fixture
def reef_home() -> Iterator[Home]:
    """A private home with a path short enough for a Unix socket."""
    root = Path(tempfile.mkdtemp(prefix="reef-", dir="/tmp"))
    home = Home(root)
    home.prepare()
    yield home
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on the clone's own disk: /tmp may be memory, where fsync costs nothing and proves nothing."""
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="test-", dir=cache) as folder:
        yield Path(folder)


@pytest.fixture
def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
async def loop_lag() -> AsyncIterator[LoopLag]:
    """Watches the test's own event loop."""
    lag = LoopLag()
    watch = asyncio.create_task(_watch(lag))
    yield lag
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch


async def _watch(lag: LoopLag) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.005)
        lag.worst = max(lag.worst, time.monotonic() - before - 0.005)
