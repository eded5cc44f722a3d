"""Agents that come with Reef, for real, in each mode: checked, taught, on a task with tools, and the person's HOME.

The installs are those of the other tests. Installing itself is in test_pi and in tests/adapters.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from adapters import agent, plan
from adapters.agent import ModeName
from adapters.machine import Node
from adapters.plan import Choice
from daemon.core.paths import Home, private_directory
from tests.e2e import agents
from tests.e2e.agents import Agent
from tests.fakes import chain
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon
from tests.fakes.provider import TASK, Provider, running_provider

pytestmark = pytest.mark.slow

PROMPT: Final = "create hello.txt"
#: (agent, mode) → whether skills have a place, and what the agent leaves in the person's HOME.
CASES: Final[dict[tuple[str, ModeName], tuple[bool, set[str]]]] = {
    ("pi", "overlay"): (True, {".pi"}),
    ("pi-0.74", "isolated"): (True, set()),
    ("pi-0.74", "overlay"): (True, {".pi"}),
    ("qwen-code", "isolated"): (True, set()),
    ("qwen-code", "overlay"): (False, {".qwen"}),
    ("aider", "overlay"): (False, {".aider"}),
    ("mini-swe-agent", "isolated"): (False, set()),
    ("hermes", "isolated"): (True, set()),
}


class Case(NamedTuple):
    daemon: RunningDaemon
    provider: Provider
    tested: Agent
    command: Path
    user: Path

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        path = f"{agents.node('new').parent}:/usr/bin:/bin"
        own = {"HOME": str(self.user), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(
            [str(self.command), *words],
            cwd=self.user / "project",
            env={**own, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def asked(self) -> list[dict[str, Any]]:
        return [one.json() for one in self.provider.requests if one.method == "POST"]


@contextmanager
def installed(home: Home, user: Path, name: str, mode: ModeName) -> Iterator[Case]:
    """What an install leaves, its packages those that the other tests keep."""
    tested = agents.AGENTS[name]
    root = agents.installed(tested)
    adapter, version = agent.load(home, name.partition("-0")[0]), "0.74.2" if name == "pi-0.74" else None
    node = Node(agents.node("new"), (26, 12, 1), Path("npm"))
    made = plan.plan(adapter, home, Choice(mode=mode, version=version), node)
    private_directory(made.root)
    (made.root / ("venv" if made.pip else "node_modules")).symlink_to(root if made.pip else root / "node_modules")
    for file in made.files:
        private_directory((home.root / file.path).parent)
        (home.root / file.path).write_text(file.text)
        (home.root / file.path).chmod(file.mode)
    (user / "project").mkdir(parents=True)
    with running_provider(TASK) as provider:
        provider.reply = tested.script
        config = provider.config(key="env:REEF_TEST_KEY")
        with running_daemon(home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            yield Case(daemon, provider, tested, home.root / made.wrapper, user)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_it_is_checked_and_taught_and_works(reef_home: Home, tmp_path: Path, name: str, mode: ModeName) -> None:
    skills, left = CASES[name, mode]
    with installed(reef_home, tmp_path / "user", name, mode) as case:
        checked = case.run(REEF_CHECK="1")
        assert (checked.returncode, checked.stderr) == (0, "")
        assert case.asked() == []
        assert {path.name for path in case.user.iterdir()} == {"project"}

        release = chain.publish(reef_home, harness={**chain.HARNESS, "memory/tools.md": "The linter is ruff.\n"})
        done = case.run(*("chat",) * (name == "hermes"), *case.tested.ask, PROMPT)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        assert (case.user / "project" / "hello.txt").read_text() == "hello-reef\n"
        said = str(case.asked()[0])
        assert all(text in said for text in ("Answer briefly.", "Use uv, not pip.", "The linter is ruff."))
        assert ("How to greet." in said) == skills
        assert "$REEF" not in said
        session = case.daemon.get("/reef/sessions")["items"][0]
        assert (session["agent"], session["cwd"]) == (case.tested.stored_as, str(case.user / "project"))
        records = case.daemon.get("/reef/records")["items"]
        releases = {case.daemon.get(f"/reef/records/{row['receipt']}")["tags"]["release"] for row in records}
        assert releases == {release.id}
        assert {path.name for path in case.user.iterdir()} - {"project"} == left
