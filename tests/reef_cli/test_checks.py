"""The doctor's checks: each trouble is found, and named with its fix."""

import os
import socket
from pathlib import Path

import pytest

from daemon.core import sshsig
from daemon.core.config import Config
from daemon.core.paths import Home
from reef_cli import checks, lifecycle


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


def test_a_home_of_ones_own_is_ok(reef_home: Home) -> None:
    assert checks.private_home(reef_home).state == "ok"


def test_a_home_that_others_can_read(reef_home: Home) -> None:
    reef_home.root.chmod(0o755)
    check = checks.private_home(reef_home)
    assert (check.state, check.detail) == ("fail", f"{reef_home.root} can be read by others")
    assert check.fix == f"chmod -R go= {reef_home.root}"


def test_a_token_that_others_can_read(reef_home: Home) -> None:
    reef_home.agent_token.write_text("reef-x")
    reef_home.agent_token.chmod(0o644)
    assert checks.private_home(reef_home).state == "fail"


def test_a_release_key_that_others_can_read(reef_home: Home) -> None:
    sshsig.signer(reef_home)
    assert checks.private_home(reef_home).state == "ok"
    reef_home.release_key.chmod(0o640)
    assert checks.private_home(reef_home).state == "fail"


def test_without_git_nothing_can_be_released(bare_path: Path) -> None:
    assert (checks.git().state, checks.git().fix) == ("warn", "install git")
    program(bare_path, "git", "true")
    assert (checks.git().state, checks.git().detail) == ("ok", str(bare_path / "git"))


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    check = checks.private_home(Home(tmp_path / "none"))
    assert (check.state, check.fix) == ("warn", "reef start")
    assert checks.disk(Home(tmp_path / "none")).name == "disk"
    assert not (tmp_path / "none").exists()


def test_no_configuration_is_fine(reef_home: Home) -> None:
    assert checks.configuration(reef_home, None)[1].state == "ok"


def test_the_file_that_the_running_daemon_was_given_is_checked(reef_home: Home, tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("server: {port: 0}\n")
    config, check = checks.configuration(reef_home, {"config_path": str(file)})
    assert (check.detail, config.server.port) == (str(file), 0)


def test_a_bad_configuration_comes_with_its_hint(reef_home: Home) -> None:
    reef_home.config.write_text("sever: {}\n")
    check = checks.configuration(reef_home, None)[1]
    assert (check.state, check.fix) == ("fail", "did you mean 'server'?")


def test_no_daemon_is_a_warning_and_starts_none(reef_home: Home) -> None:
    told, check = checks.daemon(reef_home)
    assert told is None
    assert (check.state, check.detail, check.fix) == ("warn", "never started", "reef start")
    assert not lifecycle.lives(reef_home)


def test_the_holder_of_the_port_is_named(reef_home: Home) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        reef_home.config.write_text(f"server: {{port: {port}}}\n")
        check = checks.port(checks.configuration(reef_home, None)[0], None)
    assert check.state == "fail"
    assert check.detail.startswith(f"{port} is held by ")
    assert f"(pid {os.getpid()})" in check.detail


def test_a_free_port(reef_home: Home, free_port: int) -> None:
    reef_home.config.write_text(f"server: {{port: {free_port}}}\n")
    assert checks.port(checks.configuration(reef_home, None)[0], None).detail == f"{free_port} is free"


def test_a_provider_that_does_not_answer(reef_home: Home, free_port: int) -> None:
    reef_home.config.write_text(f"engines: {{away: {{base_url: 'http://127.0.0.1:{free_port}/v1'}}}}\n")
    (check,) = checks.remotes(reef_home, checks.configuration(reef_home, None)[0], None)
    assert (check.name, check.state) == ("away", "fail")
    assert "engines.away.base_url" in (check.fix or "")


def test_a_key_that_others_can_read_is_not_used(reef_home: Home, tmp_path: Path, free_port: int) -> None:
    (tmp_path / "key").write_text("sk-canary")
    (tmp_path / "key").chmod(0o644)
    reef_home.config.write_text(
        f"engines: {{away: {{base_url: 'http://127.0.0.1:{free_port}', key: 'file:{tmp_path}/key'}}}}\n"
    )
    _, check = checks.remotes(reef_home, checks.configuration(reef_home, None)[0], None)
    assert (check.name, check.state, check.fix) == ("away key", "fail", f"chmod 600 {tmp_path}/key")
    assert "sk-canary" not in check.detail


def test_no_provider_needs_no_check(reef_home: Home) -> None:
    assert list(checks.remotes(reef_home, Config(), None)) == []


@pytest.mark.parametrize(
    ("version", "said"),
    [("v26.12.1", "26.12.1"), ("v20.20.2", "20.20.2; Pi gets a newer one of its own"), ("garbage", "no Node.js")],
)
def test_node(bare_path: Path, reef_home: Home, version: str, said: str) -> None:
    program(bare_path, "node", f"echo {version}")
    program(bare_path, "npm", "echo 11")
    assert checks.node(reef_home).detail.startswith(said)


def test_no_node_is_a_warning(bare_path: Path, reef_home: Home) -> None:
    assert checks.node(reef_home).state == "warn"


def test_a_command_off_the_path_is_a_warning(bare_path: Path) -> None:
    assert (checks.path().fix or "").startswith("export PATH=")
    program(bare_path, "reef", "")
    assert checks.path().state == "ok"


def test_no_model_names_the_command_that_adds_one(reef_home: Home) -> None:
    assert checks.model(reef_home, None).fix == "reef models add default"
    (reef_home.models / "some.gguf").touch()
    assert checks.model(reef_home, None).state == "ok"
    assert checks.model(reef_home, {"model": None}).state == "warn"


def test_an_engine_that_is_not_installed_is_a_warning_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "python", "echo \"ModuleNotFoundError: No module named 'llama_cpp'\" >&2; exit 1")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    check = checks.engine()
    assert (check.state, check.fix) == ("warn", f"{tmp_path}/python -m daemon.engines.wheel")


def test_an_engine_that_crashes_fails_without_taking_the_doctor_along(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "python", "kill -ILL $$")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    check = checks.engine()
    assert check.state == "fail"
    assert "it ended with -4" in check.detail
