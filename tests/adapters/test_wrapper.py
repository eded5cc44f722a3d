"""The few lines of sh in ``reef-pi``: they find Reef's Python, whatever the folder and the environment hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters import agent, wrapper
from daemon.core.paths import Home

PI = agent.load(Home(Path("/nowhere")), "pi")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "reef-pi"
    path.parent.mkdir()
    path.write_text(wrapper.text(Home(tmp_path / "it's a $HOME; `x`\n"), PI))
    path.chmod(0o700)
    return path


def run(command: Path, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(command), "-p", "it's"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_reaches_reef_with_its_home(command: Path, tmp_path: Path) -> None:
    done = run(command, tmp_path)
    assert done.returncode == 5
    assert done.stderr.splitlines()[0] == "error: pi is not installed"


def test_a_projects_files_and_variables_are_not_imported(command: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("json", "adapters", "reef_cli", "sitecustomize"):
        (project / f"{name}.py").write_text("raise SystemExit('imported')")
    done = run(command, project, PYTHONPATH=str(project), PYTHONSTARTUP=str(project / "json.py"), PYTHONHOME="")
    assert "imported" not in done.stderr
    assert done.returncode == 5


def test_without_python_it_says_what_to_do(command: Path, tmp_path: Path) -> None:
    command.write_text(command.read_text().replace(sys.executable, "/gone/python"))
    done = run(command, tmp_path)
    assert done.returncode == 127
    hint = "install Reef again, then: reef harness install --adapter pi"
    assert done.stderr == f"reef-pi: Reef's program is gone: /gone/python\n  hint: {hint}\n"


def test_it_follows_an_installed_reefs_upgrades(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As install.sh leaves it: a receipt that names the environment in use, a new one after each upgrade."""
    place = tmp_path / "it's here"
    for env in ("env-1", "env-2"):
        (place / env / "bin").mkdir(parents=True)
        python = place / env / "bin" / "python"
        python.write_text(f'#!/bin/sh\necho {env} "$4"\n')
        python.chmod(0o700)
    (place / "receipt").write_text(f"current {place}/env-1\n")
    monkeypatch.setattr(sys, "prefix", str(place / "env-1"))
    monkeypatch.setattr(sys, "executable", str(place / "env-1" / "bin" / "python"))
    monkeypatch.setattr(wrapper, "__file__", str(place / "env-1" / "lib" / "adapters" / "wrapper.py"))
    command = tmp_path / "reef-pi"
    command.write_text(wrapper.text(Home(tmp_path), PI))
    command.chmod(0o700)
    assert run(command, tmp_path).stdout == "env-1 -p\n"
    (place / "receipt").write_text(f"current {place}/env-2\nprevious {place}/env-1\n")
    assert run(command, tmp_path).stdout == "env-2 -p\n"
    (place / "receipt").unlink()
    assert run(command, tmp_path).stdout == "env-1 -p\n"
    assert "sys.path" not in command.read_text()
