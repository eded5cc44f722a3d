"""Applying a plan: what is run, what is written, and that nothing outside the plan's directory is touched."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import base
from adapters.base import InstallPlan, Node, Package, PlannedFile
from daemon.core.errors import ReefError

#: Stands in for npm and the registry: installs an agent that prints its version, and tells how it was called.
NPM = """#!/bin/sh
prefix=$3
env > "$prefix/npm.env"
echo "$@" >> "$prefix/npm.calls"
mkdir -p "$prefix/node_modules/.bin"
printf '#!/bin/sh\\necho %s' "${FAKE_VERSION:-1.2.3}" > "$prefix/node_modules/.bin/agent"
chmod +x "$prefix/node_modules/.bin/agent"
echo litter > "$HOME/litter"
exit ${FAKE_EXIT:-0}
"""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    npm = tmp_path / "npm"
    npm.write_text(NPM)
    npm.chmod(0o700)
    return Node(tmp_path / "node", (26, 12, 1), npm)


@pytest.fixture
def plan(tmp_path: Path) -> InstallPlan:
    root = tmp_path / "agents" / "agent"
    return InstallPlan(
        agent="agent",
        root=root,
        packages=(Package("the-agent", "1.2.3", installed_mb=100), Package("node-x", "26.0.0", installed_mb=200)),
        files=(PlannedFile(root / "config" / "settings.json", '{"a": 1}'),),
        command=(str(root / "node_modules" / ".bin" / "agent"),),
        environment={"AGENT_DIR": str(root / "config")},
    )


Apply = Callable[[], list[str]]


@pytest.fixture
def apply(plan: InstallPlan, node: Node) -> Apply:
    """Apply the plan; what was said."""

    def run() -> list[str]:
        said: list[str] = []
        base.apply(plan, node, said.append)
        return said

    return run


def test_it_installs_pinned_versions_and_says_what_and_how_much(plan: InstallPlan, apply: Apply) -> None:
    said = apply()
    assert said[0] == f"installing the-agent@1.2.3 and node-x@26.0.0, 300 MB on disk, into {plan.root}"
    assert said[-1] == f"agent 1.2.3 is installed in {plan.root}"
    call = (plan.root / "npm.calls").read_text().split()
    assert call[:3] == ["install", "--prefix", str(plan.root)]
    assert call[-2:] == ["the-agent@1.2.3", "node-x@26.0.0"]
    assert "--ignore-scripts" in call


def test_files_are_private_and_rewritten_each_time(plan: InstallPlan, apply: Apply) -> None:
    apply()
    file = plan.files[0].path
    assert file.read_text() == '{"a": 1}'
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.write_text("changed")
    apply()
    assert file.read_text() == '{"a": 1}'


def test_what_is_installed_is_not_installed_again(plan: InstallPlan, apply: Apply) -> None:
    apply()
    assert base.is_installed(plan)
    assert apply() == []
    assert len((plan.root / "npm.calls").read_text().splitlines()) == 1


def test_another_version_is_installed_over_it(
    plan: InstallPlan, node: Node, apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply()
    newer = InstallPlan(
        plan.agent, plan.root, (Package("the-agent", "2.0.0", 100),), plan.files, plan.command, plan.environment
    )
    assert not base.is_installed(newer)
    monkeypatch.setenv("FAKE_VERSION", "2.0.0")
    base.apply(newer, node, lambda _: None)
    assert base.is_installed(newer)


def test_npm_gets_a_home_of_its_own_that_is_gone_afterwards(
    plan: InstallPlan, apply: Apply, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "user"
    home.mkdir()
    (home / ".npmrc").write_text("registry=https://npm.example\n")
    monkeypatch.setenv("HOME", str(home))
    apply()
    env = dict(line.split("=", 1) for line in (plan.root / "npm.env").read_text().splitlines() if "=" in line)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "npm_config_cache"):
        assert env[name].startswith(str(plan.root / "npm-home"))
    assert env["npm_config_userconfig"] == str(home / ".npmrc")
    assert [path.name for path in home.iterdir()] == [".npmrc"]
    assert not (plan.root / "npm-home").exists()


def test_a_failing_npm_is_quoted(plan: InstallPlan, apply: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_EXIT", "1")
    with pytest.raises(ReefError, match="npm failed"):
        apply()
    assert not base.is_installed(plan)


def test_the_wrong_version_is_refused(plan: InstallPlan, apply: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "0.74.2")
    with pytest.raises(ReefError, match=r"1\.2\.3 was asked for, '0\.74\.2' answers"):
        apply()
    assert not base.is_installed(plan)


def test_a_cut_install_does_not_count(plan: InstallPlan, apply: Apply) -> None:
    apply()
    plan.receipt.write_text(json.dumps({"agent": "agent"})[:-3])
    assert not base.is_installed(plan)


def test_the_agents_environment_is_ours_over_the_persons(plan: InstallPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_DIR", "/home/user/.agent")
    monkeypatch.setenv("EDITOR", "vi")
    environment = base.environment(plan)
    assert environment["AGENT_DIR"] == str(plan.root / "config")
    assert environment["EDITOR"] == "vi"


@pytest.mark.parametrize(
    ("programs", "found"),
    [
        ({"node": "echo v22.19.3", "npm": ""}, (22, 19, 3)),
        ({"node": "echo v22.19.3"}, None),
        ({"npm": ""}, None),
        ({"node": "exit 1", "npm": ""}, None),
        ({"node": "echo hello", "npm": ""}, None),
    ],
)
def test_node_is_found_only_with_npm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], found: tuple[int, ...] | None
) -> None:
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    node = base.find_node()
    assert (node.version if node else None) == found
