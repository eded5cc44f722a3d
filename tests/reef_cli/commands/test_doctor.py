"""`reef doctor`: each trouble is found and comes with its fix."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli import lifecycle
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def checks(reef: Reef) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in reef("doctor", "--json").json()["checks"]}


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


def test_a_running_daemon_is_well(served: Served, cli: Reef) -> None:
    result = cli("doctor")
    assert result.code == 0, result.out
    lines = result.out.splitlines()
    assert any(line.startswith(f"ok   daemon      0.1.0, pid {served.daemon.process.pid}") for line in lines)
    assert any(line.startswith(f"ok   port        {served.daemon.port}") for line in lines)
    assert any(line.startswith(f"ok   p           {served.provider.url}") for line in lines)
    assert not any(line.startswith("fail") for line in lines)


def test_it_starts_nothing(reef: Reef, reef_home: Home) -> None:
    found = checks(reef)
    assert (found["daemon"]["state"], found["daemon"]["fix"]) == ("warn", "reef start")
    assert not lifecycle.lives(reef_home)


def test_every_trouble_has_a_fix(reef: Reef, bare_path: Path) -> None:
    troubled = [check for check in checks(reef).values() if check["state"] != "ok" and check["name"] != "disk"]
    assert troubled
    assert all(check["fix"] for check in troubled)


def test_a_home_that_others_can_read_fails(reef: Reef, reef_home: Home) -> None:
    reef_home.root.chmod(0o755)
    result = reef("doctor")
    assert result.code == ExitCode.FAILED
    assert f"fail home        {reef_home.root} can be read by others" in result.out
    assert f"fix: chmod -R go= {reef_home.root}" in result.out


def test_a_token_that_others_can_read_fails(reef: Reef, reef_home: Home) -> None:
    reef_home.agent_token.write_text("reef-x")
    reef_home.agent_token.chmod(0o644)
    assert checks(reef)["home"]["state"] == "fail"


def test_a_bad_configuration_fails_with_the_hint(reef: Reef, reef_home: Home) -> None:
    reef_home.config.write_text("sever: {}\n")
    found = checks(reef)["config"]
    assert (found["state"], found["fix"]) == ("fail", "did you mean 'server'?")


def test_the_holder_of_a_port_is_named(reef: Reef, reef_home: Home) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        reef_home.config.write_text(f"server: {{port: {port}}}\n")
        found = checks(reef)["port"]
    assert found["state"] == "fail"
    assert found["detail"].startswith(f"{port} is held by ")
    assert f"(pid {os.getpid()})" in found["detail"]


def test_a_provider_that_does_not_answer_fails(reef: Reef, reef_home: Home, free_port: int) -> None:
    reef_home.config.write_text(f"engines: {{away: {{base_url: 'http://127.0.0.1:{free_port}/v1'}}}}\n")
    found = checks(reef)["away"]
    assert found["state"] == "fail"
    assert "engines.away.base_url" in found["fix"]


@pytest.mark.parametrize(
    ("version", "said"),
    [("v26.12.1", "26.12.1"), ("v20.20.2", "20.20.2; Pi gets a newer one of its own"), ("garbage", "no Node.js")],
)
def test_node_versions(reef: Reef, bare_path: Path, version: str, said: str) -> None:
    program(bare_path, "node", f"echo {version}")
    program(bare_path, "npm", "echo 11")
    assert checks(reef)["node"]["detail"].startswith(said)


def test_a_command_off_the_path_is_a_warning(reef: Reef, bare_path: Path) -> None:
    assert checks(reef)["path"]["fix"].startswith("export PATH=")
    program(bare_path, "reef", "")
    assert checks(reef)["path"]["state"] == "ok"


def test_no_model_names_the_command_that_adds_one(reef: Reef, reef_home: Home) -> None:
    assert checks(reef)["model"]["fix"] == "reef models add default"
    (reef_home.models / "some.gguf").touch()
    assert checks(reef)["model"]["state"] == "ok"
