"""A dashboard's daemon: the fake one; times are told in UTC; the unexpected is not forgiven."""

import time
from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from tests.fakes.dashboard import FakeDaemon


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a screen did not expect ends the dashboard, and with it the test."""
    monkeypatch.setenv("REEF_DEBUG", "1")


@pytest.fixture
def fake(reef_home: Home) -> Iterator[FakeDaemon]:
    with FakeDaemon(reef_home.socket).running() as daemon:
        yield daemon
