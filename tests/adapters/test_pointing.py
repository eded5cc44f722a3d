"""What is said about each agent can be read by it, names no key, and is what the installed agents run on."""

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from adapters.pointing import ADDRESS, AGENTS, Pointing
from reef_cli.commands.env import environment
from tests.e2e import agents

READERS: dict[str, Callable[[str], Any]] = {".json": json.loads, ".toml": tomllib.loads, ".yaml": yaml.safe_load}


@pytest.mark.parametrize("pointing", AGENTS.values(), ids=AGENTS)
def test_the_file_is_read_and_says_the_true_address(pointing: Pointing) -> None:
    assert set(pointing.variables) <= set(environment(ADDRESS, "token"))
    if pointing.file:
        here = "http://127.0.0.1:1/t/it"
        assert READERS[pointing.file[pointing.file.rindex(".") :]](pointing.filled(here))
        assert pointing.filled(here).count(here) == pointing.text.count(ADDRESS)
    assert pointing.text.count(ADDRESS) + sum("BASE" in name for name in pointing.variables) == 1


def test_every_agent_is_run_for_real() -> None:
    """Codex has a test of its own."""
    assert {id(agent.pointing) for agent in agents.AGENTS.values()} == {
        id(pointing) for name, pointing in AGENTS.items() if name != "codex"
    }


def test_the_window_is_the_models_where_it_is_known() -> None:
    text = AGENTS["opencode"].filled("http://127.0.0.1:8192", 4096)
    assert json.loads(text)["provider"]["reef"]["models"]["default"]["limit"] == {"context": 4096, "output": 1024}
    assert "http://127.0.0.1:8192/v1" in text
    wide = json.loads(AGENTS["pi"].filled(ADDRESS, 200_000))["providers"]["reef"]["models"]
    assert wide == [{"id": "default", "contextWindow": 200_000, "maxTokens": 8192}]
    assert AGENTS["pi"].filled(ADDRESS) == AGENTS["pi"].text
