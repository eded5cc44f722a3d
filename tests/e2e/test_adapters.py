"""Agents that come with Reef, for real, in each mode: checked, taught, on a task with tools, and the person's HOME.

The installs are those of the other tests. Installing itself is in test_pi and in tests/adapters.
"""

import shutil
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
from tests.e2e.terminal import Terminal
from tests.fakes import chain
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
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
def installed(home: Home, user: Path, name: str, mode: ModeName, **choice: Any) -> Iterator[Case]:
    """What an install leaves, its packages those that the other tests keep. ``choice``: more of `Choice`."""
    tested = agents.AGENTS[name]
    root = agents.installed(tested)
    adapter, version = agent.load(home, name.partition("-0")[0]), "0.74.2" if name == "pi-0.74" else None
    node = Node(agents.node("new"), (26, 12, 1), Path("npm"))
    made = plan.plan(adapter, home, Choice(mode=mode, version=version, **choice), node)
    private_directory(made.root)
    if name == "codex":  # its programs are a package under another name where npm chooses one for the machine
        private_directory(made.root / "node_modules" / "@openai")
        (program,) = (root / "node_modules" / "@openai").glob("codex-*")
        (made.root / "node_modules" / "@openai" / "codex").symlink_to(program)
    else:
        (made.root / ("venv" if made.pip else "node_modules")).symlink_to(root if made.pip else root / "node_modules")
    for file in made.files:
        private_directory((home.root / file.path).parent)
        (home.root / file.path).write_text(file.text)
        (home.root / file.path).chmod(file.mode)
    (user / "project").mkdir(parents=True, exist_ok=True)
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


@pytest.mark.parametrize("name", ["pi", "pi-0.74"])
def test_on_the_persons_configuration_pi_tells_and_takes_feedback(reef_home: Home, tmp_path: Path, name: str) -> None:
    """Their own rules stay, their folder gets nothing of Reef's, and the next start tells what is new."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not on this machine")
    user = tmp_path / "user"
    (user / ".pi" / "agent").mkdir(parents=True)
    (user / ".pi" / "agent" / "AGENTS.md").write_text("Their own rule.\n")
    with installed(reef_home, user, name, "overlay") as case:
        first = chain.publish(reef_home)
        terminal = Terminal(reef_home.run / "tmux")
        environment = {"HOME": str(user), "TERM": "xterm-256color", "REEF_POLL_SECONDS": "0.5"}
        environment |= {"PI_OFFLINE": "1", "PYTHONPATH": str(REPOSITORY)}
        terminal.start([str(case.command)], user / "project", environment)
        try:
            terminal.see("Reef r1")
            terminal.type("create hello.txt")
            terminal.see("Done: I created hello.txt")
            terminal.type("/good nice")
            terminal.see("Reef: good on rec_")
            chain.publish(reef_home, "job_2", {"rules.md": "Two.\n"}, reason="a second rule")
            terminal.see("a second rule")
            terminal.type("/quit")
            until(terminal.ended, "Pi ends")
        finally:
            terminal("kill-server")
        assert "Their own rule." in str(case.asked()[0])
        rated = case.daemon.get("/reef/last")
        (report,) = case.daemon.get(f"/reef/records/{rated['receipt']}")["reports"]
        assert (report["feedback"], report["score"]) == ("nice", 1.0)
        case.run("-p", "again")
        assert "Two." in str(case.asked()[-1])
        assert first.id not in str(case.asked()[-1])
    kept = [path for path in (user / ".pi").rglob("*") if path.is_file() and "sessions" not in path.parts]
    assert not any("reef" in path.read_text() for path in kept)
