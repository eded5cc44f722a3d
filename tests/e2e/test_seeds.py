"""A seed in real agents: taken by one command, its rules and skills are told to the model that the agent asks."""

import shutil
from pathlib import Path

import pytest

from adapters import seeds
from adapters.machine import find_node
from daemon.core import harness
from daemon.core.harness import Kind
from daemon.core.paths import Home
from tests.e2e.wrapping import SCENARIO, Installed, project
from tests.fakes.daemon import running_daemon
from tests.fakes.provider import Turn, running_provider

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("adapter", ["pi", "claude-code"])
def test_rules_and_skills_are_told_to_the_model(reef_home: Home, tmp_path: Path, adapter: str) -> None:
    if find_node() is None or shutil.which("npm") is None:
        pytest.skip("Node.js with npm is not on this machine")
    files = seeds.files("developer")
    with (
        running_provider((Turn("Done."),)) as provider,
        running_daemon(reef_home, provider.config(key="env:K"), environment={"K": "k"}) as daemon,
    ):
        (user := tmp_path / "user").mkdir()
        installed = Installed(daemon, provider, user, adapter=adapter, mode="isolated")
        done = installed.reef("harness", "install", "--adapter", adapter, "--scenario", SCENARIO)
        assert done.returncode == 0, done.stderr
        assert installed.answered("harness", "seed", "developer", "--scenario", SCENARIO, "--yes")["number"] == 1
        assert installed.run(project(tmp_path / "work"), "-p", "hello").returncode == 0
        asked = "\n".join(request.body.decode() for request in provider.requests)
    assert "Never claim that something works when you have not seen it work" in asked
    for path in files:
        if (entry := harness.entry(path)) and entry.kind is Kind.SKILL:
            assert entry.name in asked, "Claude Code leaves descriptions out where there are many"
