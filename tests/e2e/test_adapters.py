"""Agents that come with Reef as data alone, for real, in each mode: checked, taught, on a task with tools.

The installs are those of the other tests. Installing itself is in test_wrapped_agents and in tests/adapters.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from adapters.agent import ModeName
from adapters.plan import Choice
from daemon.core.paths import Home
from tests.e2e import agents
from tests.e2e.agents import Agent
from tests.e2e.wrapping import put
from tests.fakes import chain
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon
from tests.fakes.provider import TASK, Provider, running_provider

pytestmark = pytest.mark.slow

PROMPT: Final = "create hello.txt"
#: (agent, mode) → whether skills have a place, and what the agent leaves in the person's HOME.
CASES: Final[dict[tuple[str, ModeName], tuple[bool, set[str]]]] = {
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
def installed(home: Home, user: Path, name: str, mode: ModeName, **choice: Any) -> Iterator[Case]:
    """What an install leaves, and a daemon for it. ``choice``: more of `Choice`."""
    tested = agents.AGENTS[name]
    command = put(home, name, Choice(mode=mode, **choice), tested)
    (user / "project").mkdir(parents=True, exist_ok=True)
    with running_provider(TASK) as provider:
        provider.reply = tested.script
        config = provider.config(key="env:REEF_TEST_KEY")
        with running_daemon(home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            yield Case(daemon, provider, tested, command, user)


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
        said = str(case.asked())  # which comes first, the task or a title for it, is chance
        assert all(text in said for text in ("Answer briefly.", "Use uv, not pip.", "The linter is ruff."))
        assert ("How to greet." in said) == skills
        assert "$REEF" not in said
        session = case.daemon.get("/reef/sessions")["items"][0]
        assert (session["agent"], session["cwd"]) == (case.tested.stored_as, str(case.user / "project"))
        records = case.daemon.get("/reef/records")["items"]
        releases = {case.daemon.get(f"/reef/records/{row['receipt']}")["tags"]["release"] for row in records}
        assert releases == {release.id}
        assert {path.name for path in case.user.iterdir()} - {"project"} == left
