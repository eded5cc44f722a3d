"""What every test may use: a home, a port, the real model, and a watch on the event loop."""

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import pytest
from hypothesis import settings

from daemon.core.paths import Home
from tests import default_model

pytest.register_assert_rewrite("tests.reef_cli.tui.seen")  # a golden that differs is shown as a diff

ROOT = Path(__file__).parents[1]

# Daemons and engines that a test starts run from anywhere; they must find this clone, not an installed package.
os.environ["PYTHONPATH"] = str(ROOT)

# Generated examples: the same ones every time, unless new ones are asked for; a busy machine is no defect.
settings.register_profile(
    "reef", deadline=None, database=None, max_examples=60, derandomize=not os.environ.get("REEF_TEST_SOAK")
)
settings.load_profile("reef")

# Programs that a shell starts in the background ignore Ctrl-C, and so would all that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _queued_seconds() -> float:
    """How long this thread has been ready to run while others ran."""
    with suppress(OSError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class LoopLag:
    """``async with LoopLag() as lag``: how late the event loop was, at worst, while the block ran. What its thread
    waited for a processor that others had is not counted, where the system says it (Linux: proc(5), ``schedstat``).
    """

    _STEP_SECONDS = 0.005

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self.ticks = 0

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watch.cancel()
        with suppress(asyncio.CancelledError):
            await self._watch

    async def _run(self) -> None:
        while True:
            before = time.monotonic() - _queued_seconds()
            await asyncio.sleep(self._STEP_SECONDS)
            late = time.monotonic() - _queued_seconds() - before - self._STEP_SECONDS
            self.longest_ms = max(self.longest_ms, late * 1000)
            self.ticks += 1


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The default model: ``REEF_TEST_MODEL``, or what ``tests/check`` fetched."""
    path = default_model.cached()
    assert path is not None, "no model to test with: run tests/check once, or set REEF_TEST_MODEL to a GGUF file"
    return path


@pytest.fixture
def reef_home() -> Iterator[Home]:
    """A private home with a path short enough for a Unix socket."""
    with new_home() as home:
        yield home


@pytest.fixture(scope="module")
def module_home() -> Iterator[Home]:
    """A home that a module's tests share."""
    with new_home() as home:
        yield home


@pytest.fixture(scope="session")
def session_home() -> Iterator[Home]:
    """A home that all tests share which only talk to its daemon."""
    with new_home() as home:
        yield home


@contextmanager
def new_home() -> Iterator[Home]:
    root = Path(tempfile.mkdtemp(prefix="reef-", dir="/tmp"))
    home = Home(root)
    home.prepare()
    yield home
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def loop_lag() -> type[LoopLag]:
    return LoopLag
