"""A real daemon with a scripted provider behind it, shared by the tests of the commands that ask it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Provider, Turn, running_provider
from tests.reef_cli.conftest import Reef, Result


@dataclass(frozen=True, slots=True)
class Served:
    daemon: RunningDaemon
    provider: Provider

    @property
    def home(self) -> Home:
        return self.daemon.home

    def ask(self, text: str, *, answer: Turn | str = "an answer", scenario: str = "default") -> str:
        """One exchange by an agent over TCP; its receipt."""
        self.provider.turns = (Turn(answer) if isinstance(answer, str) else answer,)
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        status, headers, raw = self.daemon.post("/v1/chat/completions", body, x_reef_scenario=scenario)
        assert status == 200, raw
        return headers["x-reef-agent-record-id"]

    def converse(self, *messages: dict[str, object]) -> str:
        """One exchange with a history of its own; its receipt."""
        body = {"model": "m", "messages": list(messages)}
        status, headers, raw = self.daemon.post("/v1/chat/completions", json.dumps(body).encode())
        assert status == 200, raw
        return headers["x-reef-agent-record-id"]


@pytest.fixture(scope="module")
def served(module_home: Home) -> Iterator[Served]:
    with running_provider() as provider, running_daemon(module_home, provider.config()) as daemon:
        yield Served(daemon, provider)


@pytest.fixture
def cli(run_reef: Callable[..., Result], served: Served) -> Reef:
    """``cli("status")`` on the daemon that is served."""
    return lambda *words: run_reef(served.home, *words)
