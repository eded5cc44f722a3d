"""One daemon with the embedded engine and the real default model, for all tests that only talk to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon


def add_model(daemon: RunningDaemon, path: Path) -> None:
    """Register the test model and make it the active one."""
    _, raw = daemon.control("POST", "/reef/models", {"source": str(path), "name": "smollm2", "use": True})
    assert b'"model"' in raw.splitlines()[-1], raw


@pytest.fixture(scope="session")
def embedded(session_home: Home, model_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(session_home) as daemon:
        add_model(daemon, model_path)
        yield daemon


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What npm loads for one install serves all others."""
    return tmp_path_factory.mktemp("downloads")
