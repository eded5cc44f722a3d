"""`reef start · stop · restart · serve`."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli import lifecycle
from tests.fakes.daemon import REPOSITORY, until
from tests.reef_cli.conftest import Reef


@pytest.fixture
def home(reef_home: Home) -> Iterator[Home]:
    reef_home.config.write_text("server: {port: 0}\n")
    yield reef_home
    lifecycle.stop_daemon(reef_home)


def test_start_restart_stop(home: Home, reef: Reef) -> None:
    first = reef("start", "--json").json()
    assert first["running"] is True
    assert reef("start").out == f"reef runs already: {first['url']}/v1 (pid {first['pid']})\n"
    home.config.write_text("server: {port: none}\n")
    assert reef("restart").code == ExitCode.USAGE
    assert reef("start").out.startswith("reef runs already")  # what is wrong stops nothing
    home.config.write_text("server: {port: 0}\n")
    second = reef("restart", "--json").json()
    assert second["pid"] != first["pid"]
    assert reef("stop").out == "reef stopped\n"
    assert reef("stop").out == "reef was not running\n"
    assert reef("stop", "--json").json() == {"stopped": False}


def test_a_start_on_a_taken_port_is_no_start_and_names_the_holder(home: Home, reef: Reef, tmp_path: Path) -> None:
    """duniter#919: it said "started" while it could not bind."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
        try:
            assert other.stdout is not None
            port = int(other.stdout.readline().split(" port ")[1].split()[0])
            home.config.write_text(f"server: {{port: {port}}}\n")
            told = reef("start")
        finally:
            other.kill()
    assert (told.code, told.out) == (ExitCode.UNREACHABLE, "")
    assert f"port {port} is taken by python" in told.err
    assert f"(pid {other.pid})" in told.err
    assert not lifecycle.lives(home)


def test_serve_runs_in_the_foreground_until_interrupted(home: Home, reef: Reef, tmp_path: Path) -> None:
    (tmp_path / "serve.yaml").write_text(
        "server: {port: 0}\nreef:\n  recipe: recipes.sao.recipe:SAORecipe\n  batch_size: 1\n  max_staleness: 18\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", "serve", "-c", "serve.yaml"],
        cwd=tmp_path,
        env={**os.environ, "REEF_HOME": str(home.root), "PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: lifecycle.probe(home), "an answer")
        told = reef("status", "--json").json()
        assert told["pid"] == process.pid
        assert told["config_path"] == str(tmp_path / "serve.yaml")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "serves" in err


def test_serve_names_a_file_that_is_not_there(reef: Reef) -> None:
    result = reef("serve", "-c", "nowhere.yaml", "--json")
    assert result.code == ExitCode.USAGE
    assert result.error()["kind"] == "config"
