"""A provider that a module's tests share, and a daemon on it; each test finds the provider as it began.

A module says what its provider answers (``TURNS``) and how its daemon is configured (``CONFIG``, where ``$URL`` is
the provider's), or has a ``daemon`` of its own.
"""

from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Provider, running_provider


@pytest.fixture(scope="module")
def one_provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    turns = getattr(request.module, "TURNS", None)
    with running_provider(turns) if turns else running_provider() as running:
        yield running


@pytest.fixture
def provider(one_provider: Provider) -> Iterator[Provider]:
    turns = one_provider.turns
    one_provider.requests.clear()
    yield one_provider
    one_provider.faults.clear()
    one_provider.turns, one_provider.reply, one_provider.echo = turns, None, False
    one_provider.pace, one_provider.gzip, one_provider.framing = 0.0, False, "plain"


@pytest.fixture(scope="module")
def daemon(request: pytest.FixtureRequest, module_home: Home, one_provider: Provider) -> Iterator[RunningDaemon]:
    config = getattr(request.module, "CONFIG", "").replace("$URL", one_provider.url) or one_provider.config()
    with running_daemon(module_home, config) as running:
        yield running


@pytest.fixture(scope="module")
def store(daemon: RunningDaemon) -> Releases:
    return Releases.open(daemon.home)
