"""`reef env`: what a shell makes of it, and that the address answers."""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from adapters.pointing import AGENTS
from reef_cli.commands.env import _fish, _posix
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef

NAMES = [
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_API_KEY",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "REEF_URL",
    "REEF_TOKEN",
]


def test_a_shell_reads_what_json_says(served: Served, cli: Reef) -> None:
    wanted = cli("env", "--json").json()["env"]
    assert list(wanted) == NAMES
    script = cli("env").out + "".join(f'printf "%s\\n" "${name}"\n' for name in NAMES)
    shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert shell.stdout.splitlines() == list(wanted.values())


def test_the_address_answers_with_the_token(served: Served, cli: Reef) -> None:
    told = cli("env", "--json").json()["env"]
    address = urlsplit(told["OPENAI_BASE_URL"])
    connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
    connection.request("GET", f"{address.path}/models", headers={"Authorization": f"Bearer {told['OPENAI_API_KEY']}"})
    assert connection.getresponse().status == 200
    connection.close()


def test_kept_keys_go_to_the_provider_and_the_address_opens_reef(served: Served, cli: Reef) -> None:
    told = cli("env", "--keep-keys", "--json").json()["env"]
    assert not [name for name in told if name.endswith(("_KEY", "AUTH_TOKEN"))]
    address = urlsplit(told["OPENAI_BASE_URL"])
    connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "with a key of my own"}]})
    headers = {"Authorization": "Bearer sk-mine", "content-type": "application/json"}
    connection.request("POST", f"{address.path}/chat/completions", body, headers)
    assert connection.getresponse().status == 200
    connection.close()
    assert served.provider.requests[-1].header("authorization") == "Bearer sk-mine"


@pytest.mark.parametrize("agent", ["", "aider", "claude-code"])
def test_a_proxy_of_the_shell_never_gets_what_is_for_the_daemon(
    served: Served, cli: Reef, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """httpx, under both vendors' SDKs, asks the proxy for 127.0.0.1 too (BerriAI/litellm#8510)."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    told = cli("env", *([agent] if agent else []), "--json").json()["env"]
    assert (told["NO_PROXY"], told["no_proxy"]) == ("127.0.0.1", "127.0.0.1")
    program = f"import httpx; print(httpx.get('{served.daemon.url}/healthz').status_code)"
    for environment, came in ((told, True), ({}, False)):
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True
        )
        assert (done.stdout == "200\n") is came, done.stderr


def test_the_token_is_the_agents_not_the_control_token(served: Served, cli: Reef) -> None:
    assert served.daemon.control_token not in cli("env").out
    assert served.daemon.agent_token in cli("env").out


def test_fish_has_its_own_words(served: Served, cli: Reef) -> None:
    lines = cli("env", "--shell", "fish").out.splitlines()
    assert lines[0] == f"set -gx OPENAI_BASE_URL '{served.daemon.url}/v1';"


@pytest.mark.parametrize("value", ["plain", "it's", '"$(rm)`x`', "a\\b", "back\\'slash", "new\nline"])
def test_quoting_holds(value: str) -> None:
    shell = subprocess.run(["sh", "-c", f"printf %s {_posix(value)}"], capture_output=True, text=True, check=True)
    assert shell.stdout == value
    assert "'" not in _fish(value)[1:-1].replace("\\\\", "").replace("\\'", "")


@pytest.mark.parametrize("name", AGENTS)
def test_an_agents_variables_are_those_that_it_takes(served: Served, cli: Reef, name: str) -> None:
    told, everything = AGENTS[name], cli("env", "--json").json()["env"]
    answered = cli("env", name, "--json").json()
    assert answered["env"] == {name: everything[name] for name in told.variables} | dict(told.fixed)
    assert answered["command"] == told.command
    if told.file:
        assert answered["file"] == {"path": told.place(os.environ), "text": told.filled(served.daemon.url)}
    assert served.daemon.agent_token not in json.dumps(answered["file"])


def test_an_agents_file_is_told_until_it_is_there(served: Served, cli: Reef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(served.home.root / "person"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    file = served.home.root / "person" / AGENTS["opencode"].file
    first = cli("env", "opencode")
    assert first.out == f"export OPENAI_API_KEY='{served.daemon.agent_token}'\n"
    assert "which is yours to write" in first.err
    text = cli("env", "opencode", "--json").json()["file"]["text"]
    assert text in first.err
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(json.loads(text) | {"theme": "system"}, indent=2))
    assert cli("env", "opencode").err == ""
    assert json.loads(file.read_text())["theme"] == "system"


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("codex", "CODEX_HOME", "config.toml"),
        ("hermes", "HERMES_HOME", "config.yaml"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("pi", "PI_CODING_AGENT_DIR", "models.json"),
        ("qwen-code", "QWEN_HOME", "settings.json"),
    ],
)
def test_an_agents_file_is_where_the_person_keeps_it(
    served: Served, cli: Reef, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, file: str
) -> None:
    """BUGS B104: not where the file would be without the agent's own variable."""
    kept = served.home.root / "kept" / name
    monkeypatch.setenv(variable, str(kept))
    told = cli("env", name, "--json").json()["file"]
    assert told["path"] == str(kept / file)
    assert f"needs this in {kept / file}, which is yours" in cli("env", name).err
    (kept / file).parent.mkdir(parents=True)
    (kept / file).write_text(told["text"])
    assert cli("env", name).err == ""


def test_an_agents_own_key_goes_on(served: Served, cli: Reef) -> None:
    told = cli("env", "codex", "--keep-keys", "--json").json()
    assert told["env"] == {}
    assert f"{served.daemon.url}/t/{served.daemon.agent_token}/v1" in told["file"]["text"]


def test_an_unknown_agent_is_answered_with_those_known(served: Served, cli: Reef) -> None:
    refused = cli("env", "vim")
    assert (refused.code, refused.out) == (5, "")
    assert "claude-code, codex, pi" in refused.err
    assert "hint: reef env claude-code\n" in cli("env", "claude").err


def test_the_help_names_every_agent(cli: Reef) -> None:
    said = "".join(cli("env", "--help").out.split())  # a line may end inside of a name
    assert ",".join(AGENTS).replace(",hermes", "orhermes") in said
