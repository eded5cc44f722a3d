"""Real Pi, from npm, through the daemon: an answer from the engine inside, and a task with tools from a provider."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters import pi
from adapters.base import InstallPlan, apply, environment, find_node
from daemon.core.paths import Home
from tests.e2e.conftest import add_model
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import TASK, Provider, running_provider

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider(TASK) as running:
        yield running


@pytest.fixture(scope="module")
def daemon(module_home: Home, provider: Provider, model_path: Path) -> Iterator[RunningDaemon]:
    config = f"""
server: {{port: 0}}
engines: {{p: {{base_url: "{provider.url}/v1"}}}}
models: {{scripted: p}}
"""
    with running_daemon(module_home, config) as running:
        add_model(running, model_path)
        yield running


@pytest.fixture(scope="module")
def plan(daemon: RunningDaemon) -> InstallPlan:
    node = find_node()
    assert node is not None, "node and npm are needed for the tests that run real agents"
    made = pi.plan(daemon.home, daemon.url, node)
    apply(made, node, print)
    return made


def run(plan: InstallPlan, folder: Path, *arguments: str) -> str:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    done = subprocess.run(
        [*plan.command, *arguments],
        cwd=folder,
        env=environment(plan),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def session(daemon: RunningDaemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.get("/reef/sessions?limit=1")["items"][0]
    return found


def test_pi_answers_from_the_engine_inside(plan: InstallPlan, daemon: RunningDaemon, tmp_path: Path) -> None:
    assert plan.version == "1.6.0"
    answer = run(plan, tmp_path, "-p", "Say hello in one short sentence.")
    assert answer.strip()
    seen = session(daemon)
    assert (seen["agent"], seen["scenario"], seen["turns"]) == ("pi", "pi", 1)
    assert daemon.get("/reef/last?scenario=pi")["engine"] == "embedded"


def test_pi_finishes_a_task_with_tools(
    plan: InstallPlan, daemon: RunningDaemon, provider: Provider, tmp_path: Path
) -> None:
    models = Path(plan.environment["PI_CODING_AGENT_DIR"]) / "models.json"
    models.write_text(models.read_text().replace('"id": "default"', '"id": "scripted"'))
    answer = run(plan, tmp_path, "--model", "reef/scripted", "-p", "Create hello.txt containing hello-reef")
    assert "Done: I created hello.txt" in answer
    assert (tmp_path / "hello.txt").read_text() == "hello-reef\n"
    seen = session(daemon)
    assert (seen["agent"], seen["turns"], seen["title"]) == ("pi", 3, "Create hello.txt containing hello-reef")
    trace = daemon.get(f"/reef/traces/{seen['id']}")
    calls = [
        part["name"] for turn in trace["records"] for part in turn["answer"]["parts"] if part["type"] == "tool_use"
    ]
    assert calls == ["bash", "bash", "bash"]
