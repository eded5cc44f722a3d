"""A person who has Claude Code and a key of their own wraps it in a few commands: the key goes on, Reef keeps none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests.e2e.agents import AGENTS, installed
from tests.fakes.daemon import running_daemon
from tests.fakes.provider import Turn, running_provider

pytestmark = pytest.mark.slow

KEY = "sk-ant-api03-a-persons-own"


def test_what_claude_code_sends_as_its_own_reaches_the_provider_alone(reef_home: Home, tmp_path: Path) -> None:
    claude = AGENTS["claude-code"]
    program = installed(claude) / claude.program
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to(program)
    environment = {
        **os.environ, **claude.quiet, "HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "ANTHROPIC_API_KEY": KEY, "REEF_HOME": str(reef_home.root),
    }  # fmt: skip
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"):
        environment.pop(name, None)

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    with running_provider([Turn("It is Tokyo.")]) as provider:
        engine = f"{{p: {{base_url: '{provider.url}/v1', api: anthropic, key: agent}}}}"
        config = f"server: {{port: 0}}\nengines: {engine}\nmodels: {{claude-*: p}}\n"
        with running_daemon(reef_home, config) as daemon:
            chosen = ("--adapter", "claude-code", "--keep-keys")
            command = run(sys.executable, "-m", "reef_cli.main", "harness", "install", *chosen).strip()
            assert provider.requests == []
            assert run(command, "-p", "What is the capital of Japan?") == "It is Tokyo.\n"
            assert {one.header("x-api-key") for one in provider.requests} == {KEY}
            assert not any(daemon.agent_token in str(one.headers) for one in provider.requests)
            (session,) = daemon.get("/reef/sessions")["items"]
            assert (session["agent"], session["turns"]) == ("claude-code", 1)
    kept = [path for path in reef_home.root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert kept == []
