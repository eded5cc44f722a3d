"""The README says what is so."""

import json
import re
from pathlib import Path

import pytest

from adapters import described
from daemon.core.config import parse
from daemon.core.errors import ExitCode

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_it_opens_with_the_two_commands() -> None:
    block = README.split("```")[1].splitlines()
    assert [line.partition("#")[0].strip() for line in block[1:3]] == ["./install.sh --demo", "tests/check"]
    assert len(README.split("```")[0].splitlines()) <= 3


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", README, re.S))
def test_every_configuration_shown_loads(text: str) -> None:
    parse(text)


def test_the_articles_configuration_is_shown_as_printed() -> None:
    shown = parse(re.findall(r"```yaml\n(.*?)```", README, re.S)[0])
    assert shown.reef == {"recipe": "recipes.sao.recipe:SAORecipe", "batch_size": 1, "max_staleness": 18}


def test_what_it_writes_for_claude_code_is_a_configuration() -> None:
    (words,) = re.findall(r"printf '%s\\n' ((?:'[^']*'[ \\\n]*)+)>~/.reef/config.yaml", README)
    told = parse("\n".join(re.findall(r"'([^']*)'", words)))
    assert told.engines["anthropic"].key == "agent"
    assert list(told.models) == ["claude-*"]


def test_the_agent_that_it_describes_is_one() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", README, re.S)
    described.check(json.loads(text))


def test_every_exit_code_is_told() -> None:
    told = README.split("Exit codes:")[1].split("## ")[0]
    assert [int(code) for code in re.findall(r"(?:^|· |\s)(\d+) [a-z]", told)] == [int(code) for code in ExitCode]


@pytest.mark.parametrize("path", re.findall(r"\b(?:tests/check|install\.sh|AGENTS\.md)\b", README))
def test_every_file_it_names_is_there(path: str) -> None:
    assert (Path(__file__).parents[1] / path).exists()


def test_no_proxy_answers_what_is_asked_of_the_daemon() -> None:
    """BUGS B112: a proxy's own page, piped into a shell (ollama/ollama#7772)."""
    commands = [
        line
        for block in re.findall(r"```sh\n(.*?)```", README.replace("\\\n", ""), re.S)
        for line in block.splitlines()
    ]
    asked = [line for line in commands if "curl " in line and ("$REEF_URL" in line or "$OPENAI_BASE_URL" in line)]
    assert asked
    assert [line for line in asked if "--noproxy '*'" not in line] == []


def test_the_dashboards_figures_are_those_that_were_measured() -> None:
    table = README.split("<!-- dashboard -->")[1].split("<!-- /dashboard -->")[0]
    assert table.startswith("\nMeasured 20")
    assert len(re.findall(r"^\| [^|]+ \| [\d.]+ [^|]*\| [^|]*\|$", table, re.M)) == 19
