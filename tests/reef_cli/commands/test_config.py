"""`reef config show · path · validate`."""

from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli import lifecycle
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef

ARTICLE = """\
reef:
  recipe: recipes.sao.recipe:SAORecipe   # Plug in an evolution recipe
  batch_size: 1                          # Recipe-specific configuration
  max_staleness: 18
"""


def test_show_without_a_daemon_has_every_default(reef: Reef, reef_home: Home) -> None:
    result = reef("config", "show")
    assert result.code == 0
    assert "idle_unload_seconds: 900.0" in result.out
    assert "defaults; there is no file" in result.err
    assert not lifecycle.lives(reef_home)


def test_show_of_a_running_daemon_is_what_it_was_started_with(served: Served, cli: Reef) -> None:
    result = cli("config", "show", "--json")
    assert result.json()["engines"]["p"]["base_url"] == f"{served.provider.url}/v1"
    assert f"the running daemon's, from {served.home.config}" in result.err


def test_path_prints_the_path_alone(reef: Reef, reef_home: Home) -> None:
    assert reef("config", "path").out == f"{reef_home.config}\n"
    assert reef("config", "path", "--json").json() == {"path": str(reef_home.config), "exists": False}


def test_the_articles_file_is_valid_as_printed(reef: Reef, tmp_path: Path) -> None:
    (tmp_path / "serve.yaml").write_text(ARTICLE)
    assert reef("config", "validate", str(tmp_path / "serve.yaml")).out == f"{tmp_path}/serve.yaml is valid\n"


def test_a_key_that_is_missing_is_said_with_the_way_out(reef: Reef, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-canary")
    (tmp_path / "serve.yaml").write_text(
        f"engines: {{far: {{base_url: 'https://far.example', key: 'file:{tmp_path}/key'}}}}"
    )
    result = reef("config", "validate", str(tmp_path / "serve.yaml"), "--json")
    assert result.json()["missing_keys"] == ["far"]
    assert f"engines.far: the provider's key is missing: {tmp_path}/key can be read by others" in result.err
    assert "chmod 600" in result.err
    assert "sk-canary" not in result.out + result.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sever: {}", "did you mean 'server'?"),
        ("server: {port: high}", "server: port: expected int, got 'high'"),
        ("{", "line 1: not YAML"),
    ],
)
def test_a_bad_file_is_a_usage_error_with_the_reason(reef: Reef, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    result = reef("config", "validate", str(tmp_path / "bad.yaml"))
    assert result.code == ExitCode.USAGE
    assert told in result.err


def test_a_file_that_is_not_there(reef: Reef) -> None:
    result = reef("config", "validate", "none.yaml")
    assert result.code == ExitCode.USAGE
    assert "no configuration at none.yaml" in result.err


def test_nothing_was_configured_yet(reef: Reef, reef_home: Home) -> None:
    result = reef("config", "validate")
    assert (result.code, result.out) == (0, f"{reef_home.config} is not there: the defaults are in force\n")
