"""As a person sees it: the dashboard in a terminal, Pi at work on the model inside, one key, the report."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.e2e.agents import AGENTS, installed
from tests.e2e.conftest import add_model
from tests.e2e.test_dashboard import Tmux, opened, tmux
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until

pytestmark = [pytest.mark.slow, pytest.mark.engine]
__all__ = ["tmux"]
QUESTION = "What is the capital of Japan?"


@pytest.fixture
def inside(reef_home: Home, model_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(reef_home) as daemon:
        add_model(daemon, model_path)
        yield daemon


def test_pi_is_seen_and_rated(inside: RunningDaemon, tmux: Tmux, tmp_path: Path) -> None:
    agent = AGENTS["pi"]
    root = installed(agent)
    opened(tmux, inside.home)
    tmux.shows("nothing yet")
    command = agent.argv(root, *agent.ask, QUESTION)
    environment = agent.environment(tmp_path, inside.url, inside.agent_token, "none")
    pi = subprocess.run(
        command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert pi.returncode == 0, pi.stdout + pi.stderr
    tmux.shows(QUESTION[:20])
    assert tmux.line(QUESTION[:20]).startswith("> ")
    tmux.press("Enter")
    tmux.shows("Esc back")
    tmux.press("+")
    tmux.shows("  + good")
    shown = reef(inside.home, "traces", "show", "--json")
    reports = [report for entry in shown["records"] for report in entry["reports"]]
    assert [(one["score"], one["undone_ns"]) for one in reports] == [(1.0, None)]
    assert shown["session"]["agent"] == "pi"
    assert shown["session"]["title"].startswith(QUESTION)
    tmux.press("q")
    until(lambda: "+ good" in tmux.line(QUESTION[:20]), "the rating in the list")
    tmux.press("q")
    tmux.shows("left with 0")


def reef(home: Home, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "reef_cli.main", *words],
        env={**os.environ, "REEF_HOME": str(home.root), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)
