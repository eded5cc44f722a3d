"""A person's own configuration of an agent that Reef wraps: wherever they keep it, and wherever it would lead."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from adapters.agent import ModeName
from daemon.core.paths import Home
from tests.e2e import agents
from tests.e2e.test_adapters import PROMPT, Case, installed
from tests.e2e.test_codex import CODEX
from tests.e2e.wrapping import digests
from tests.fakes import chain
from tests.fakes.daemon import until
from tests.fakes.provider import TASK, Provider, running_provider

pytestmark = pytest.mark.slow

RULE: Final = "Their own rule: be kind."


class Theirs(NamedTuple):
    """``variable`` names the folder of a person's ``rules``, or ``named`` in it; ``usual`` is what is there without it,
    below HOME. ``elsewhere``: files below that folder by which the agent asks another server, its address for ``$URL``.
    """

    variable: str
    rules: str
    usual: str
    elsewhere: Mapping[str, str]
    named: str = ""


_CODEX = """\
model_provider = "other"
model = "theirs"
[model_providers.other]
name = "Other"
base_url = "$URL/v1"
wire_api = "responses"
"""
#: OpenCode adds it to a file without one.
_SCHEMA = {"$schema": "https://opencode.ai/config.json"}
_OPENAI = {"other": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "$URL/v1"}, "models": {"theirs": {}}}}
AGENTS: Final = {
    "claude-code": Theirs(
        "CLAUDE_CONFIG_DIR",
        "CLAUDE.md",
        ".claude",
        {
            "settings.json": json.dumps(
                {"env": {"ANTHROPIC_BASE_URL": "$URL", "ANTHROPIC_AUTH_TOKEN": "x", "CLAUDE_CODE_USE_BEDROCK": "1"}}
            )
        },
    ),
    "codex": Theirs("CODEX_HOME", "AGENTS.md", ".codex", {"config.toml": _CODEX}),
    "opencode": Theirs(
        "XDG_CONFIG_HOME",
        "opencode/AGENTS.md",
        ".config",
        {"opencode/opencode.json": json.dumps({**_SCHEMA, "model": "other/theirs", "provider": _OPENAI})},
    ),
    "opencode, a file": Theirs(
        "OPENCODE_CONFIG",
        "RULES.md",
        ".config/opencode/opencode.json",
        {
            "own.json": json.dumps(
                {**_SCHEMA, "model": "other/theirs", "provider": _OPENAI, "instructions": ["$HERE/RULES.md"]}
            )
        },
        named="own.json",
    ),
    "pi": Theirs(
        "PI_CODING_AGENT_DIR",
        "AGENTS.md",
        ".pi",
        {"settings.json": json.dumps({"defaultProvider": "openai", "defaultModel": "gpt-5"})},
    ),
    "qwen-code": Theirs(
        "QWEN_HOME", "QWEN.md", ".qwen", {".env": "OPENAI_BASE_URL=$URL/v1\nOPENAI_API_KEY=x\nOPENAI_MODEL=theirs\n"}
    ),
}


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    with running_provider(TASK) as provider:
        yield provider


def prepared(folder: Path, theirs: Theirs, url: str) -> dict[str, str]:
    """The person's files; the environment that names them."""
    for name, text in {theirs.rules: f"{RULE}\n", **theirs.elsewhere}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("$URL", url).replace("$HERE", str(folder)))
    return {theirs.variable: str(folder / theirs.named)}


def worked(case: Case, environment: Mapping[str, str]) -> str:
    """All that its turns said to the model, of a task that was done."""
    done = case.run(*case.tested.ask, PROMPT, **environment)
    assert (done.returncode, TASK[-1].text in done.stdout) == (0, True), done
    assert (case.user / "project" / "hello.txt").read_text() == "hello-reef\n"
    return str(case.asked())


@pytest.mark.parametrize("name", AGENTS)
def test_on_top_of_the_persons_it_is_theirs_wherever_they_keep_it(
    reef_home: Home, tmp_path: Path, elsewhere: Provider, name: str
) -> None:
    """BUGS B104, and B101, B102, B106: though their settings name another server, it is Reef that is asked, from the
    first request on, and at every start again.
    """
    theirs, kept = AGENTS[name], tmp_path / "kept elsewhere"
    environment = prepared(kept, theirs, elsewhere.url)
    with installed(reef_home, tmp_path / "user", name.partition(",")[0], "overlay") as case:
        chain.publish(reef_home)
        said = worked(case, environment)
        assert RULE in said
        assert "Use uv, not pip." in said
        assert not (case.user / theirs.usual).exists()
        assert [one.path for one in elsewhere.requests if one.method == "POST"] == []
        for file in (theirs.rules, *theirs.elsewhere):
            assert "reef" not in (kept / file).read_text().lower()


@pytest.mark.parametrize("name", AGENTS)
def test_killed_in_the_middle_the_agent_is_the_persons_as_before(
    reef_home: Home, tmp_path: Path, elsewhere: Provider, name: str
) -> None:
    """BUGS B097 and B109: kill -9 leaves nothing to put back; the agent itself still asks whom it asked before."""
    theirs, kept = AGENTS[name], tmp_path / "kept elsewhere"
    environment = prepared(kept, theirs, elsewhere.url)
    files = {file: (kept / file).read_bytes() for file in (theirs.rules, *theirs.elsewhere)}
    with installed(reef_home, tmp_path / "user", name.partition(",")[0], "overlay") as case:
        case.provider.pace = 30.0
        with subprocess.Popen(
            [str(case.command), *case.tested.ask, PROMPT],
            cwd=case.user / "project",
            env={**case.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as running:
            until(case.asked, "it asks")
            os.killpg(running.pid, signal.SIGKILL)
            assert running.wait(30) == -signal.SIGKILL
        assert {file: (kept / file).read_bytes() for file in files} == files
        if name == "codex":
            asked, elsewhere.reply = len(case.asked()), CODEX.script
            plain = CODEX.argv(agents.installed(CODEX), *CODEX.ask, PROMPT)
            told = {**case.environment, **environment}
            subprocess.run(
                plain, cwd=case.user / "project", env=told, stdin=subprocess.DEVNULL, timeout=180, check=True
            )
            assert len(case.asked()) == asked
            assert {one.json()["model"] for one in elsewhere.requests if one.method == "POST"} == {"theirs"}


@pytest.mark.parametrize("name", AGENTS)
def test_kept_apart_it_neither_reads_nor_changes_the_persons(
    reef_home: Home, tmp_path: Path, elsewhere: Provider, name: str
) -> None:
    """BUGS B104 and B109: whoever wraps an agent for one start has changed nothing for the next one without Reef."""
    kept = tmp_path / "kept elsewhere"
    environment = prepared(kept, AGENTS[name], elsewhere.url)
    before = digests(kept)
    with installed(reef_home, tmp_path / "user", name.partition(",")[0], "isolated") as case:
        said = worked(case, environment)
        assert RULE not in said
        assert digests(kept) == before
        assert {path.name for path in case.user.iterdir()} == {"project"}
        assert [one.path for one in elsewhere.requests if one.method == "POST"] == []


@pytest.mark.parametrize("mode", ["isolated", "overlay"])
def test_a_model_that_codex_knows_is_one_that_reef_answers(reef_home: Home, tmp_path: Path, mode: ModeName) -> None:
    """BUGS B096 and B109: who takes one of its vendor's gets Reef's release and is answered, and the provider is asked
    by that name.
    """
    with installed(reef_home, tmp_path / "user", "codex", mode) as case:
        release = chain.publish(reef_home)
        done = case.run("exec", "--skip-git-repo-check", "-m", "gpt-5.5", "Say it.")
        assert done.returncode == 0, done
        assert {one["model"] for one in case.asked()} == {"gpt-5.5"}
        (row,) = case.daemon.get("/reef/records")["items"][-1:]
        assert case.daemon.get(f"/reef/records/{row['receipt']}")["tags"]["release"] == release.id
