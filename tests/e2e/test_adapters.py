"""Agents that come with Reef as data alone, for real, in each mode: checked, taught, on a task with tools.

The installs are those of the other tests. Installing itself is in test_wrapped_agents and in tests/adapters.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from adapters.agent import MODES, ModeName
from adapters.plan import Choice
from daemon.core import harness
from daemon.core.paths import Home
from tests.e2e import agents
from tests.e2e.agents import Agent
from tests.e2e.test_codex import CODEX
from tests.e2e.wrapping import put
from tests.fakes import chain, mcp_server, shapes
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
from tests.fakes.provider import TASK, Call, Provider, Turn, bash, running_provider

pytestmark = pytest.mark.slow

PROMPT: Final = "create hello.txt"
#: (agent, mode) → what it is said to leave out of a release, and what it leaves in the person's HOME.
CASES: Final[dict[tuple[str, ModeName], tuple[str, set[str]]]] = {
    ("qwen-code", "isolated"): ("", set()),
    ("qwen-code", "overlay"): ("", {".qwen"}),
    ("aider", "overlay"): ("mcp.json", {".aider"}),
    ("mini-swe-agent", "isolated"): ("mcp.json", set()),
    ("hermes", "isolated"): ("mcp.json", set()),
}


class Case(NamedTuple):
    daemon: RunningDaemon
    provider: Provider
    tested: Agent
    command: Path
    user: Path

    @property
    def environment(self) -> dict[str, str]:
        path = f"{agents.node('new').parent}:/usr/bin:/bin"
        return {"HOME": str(self.user), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "PYTHONPATH": str(REPOSITORY)}

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.command), *words],
            cwd=self.user / "project",
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def asked(self) -> list[dict[str, Any]]:
        return [one.json() for one in self.provider.requests if one.method == "POST"]


@contextmanager
def installed(
    home: Home, user: Path, name: str, mode: ModeName, *, dialects: str | None = None, **choice: Any
) -> Iterator[Case]:
    """What an install leaves, and a daemon for it, whose provider speaks ``dialects``. ``choice``: more of `Choice`."""
    tested = CODEX if name == "codex" else agents.AGENTS[name]
    command = put(home, name, Choice(mode=mode, **choice), tested)
    (user / "project").mkdir(parents=True, exist_ok=True)
    with running_provider(TASK) as provider:
        provider.reply = tested.script
        config = provider.config(key="env:REEF_TEST_KEY", **({"dialects": dialects} if dialects else {}))
        with running_daemon(home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            yield Case(daemon, provider, tested, command, user)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_it_is_checked_and_taught_and_works(reef_home: Home, tmp_path: Path, name: str, mode: ModeName) -> None:
    out, left = CASES[name, mode]
    with installed(reef_home, tmp_path / "user", name, mode) as case:
        checked = case.run(REEF_CHECK="1")
        assert (checked.returncode, checked.stderr) == (0, "")
        assert case.asked() == []
        assert {path.name for path in case.user.iterdir()} == {"project"}

        log = tmp_path / "asked of the server"
        more = {
            "memory/tools.md": "The linter is ruff.\n",
            "config.json": '{"model": "other"}',
            "skills/greet/names.md": "Greet Ada first.\n",
        }
        release = chain.approved(reef_home, {**chain.HARNESS, **more, "mcp.json": mcp_server.named(log)})
        done = case.run(*("chat",) * (name == "hermes"), *case.tested.ask, PROMPT)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        assert (case.user / "project" / "hello.txt").read_text() == "hello-reef\n"
        said = str(case.asked())  # which comes first, the task or a title for it, is chance
        assert all(text in said for text in ("Answer briefly.", "Use uv, not pip.", "The linter is ruff."))
        assert ("How to greet." in said, "Greet Ada" in said) == (True, name == "aider")  # that reads them all at once
        assert {one["model"].removeprefix("openai/") for one in case.asked()} == {"other"}
        assert (f"does not take this of release r1: {out}\n" in done.stderr) == bool(out)
        assert ("tools/list" in log.read_text() if log.exists() else False) == ("mcp.json" not in out)
        assert "$REEF" not in said
        session = case.daemon.get("/reef/sessions")["items"][0]
        assert (session["agent"], session["cwd"]) == (case.tested.stored_as, str(case.user / "project"))
        records = case.daemon.get("/reef/records")["items"]
        releases = {case.daemon.get(f"/reef/records/{row['receipt']}")["tags"]["release"] for row in records}
        assert releases == {release.id}
        assert {path.name for path in case.user.iterdir()} - {"project"} == left


def _reads_skill(asked: Any) -> Turn:
    """Asks for the file that the rules name, as a model does whose task the skill fits."""
    named = re.search(r"greet: How to greet\. \((/[^()]+/SKILL\.md)\)", str(asked["messages"]))
    command = f"cat '{named[1]}'" if named else "exit 9"
    tools = [tool["function"]["name"] for tool in asked.get("tools", ())]
    if shapes.Chat(asked, 0).answered():
        return Turn("", (bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),)) if "bash" in tools else Turn("Done.")
    return Turn("", (Call("exec_command", {"cmd": command}) if "exec_command" in tools else bash(command),))


@pytest.mark.parametrize(("name", "mode"), [("codex", "overlay"), ("mini-swe-agent", "isolated")])
def test_an_agent_without_a_folder_for_skills_reads_them_where_the_rules_say(
    reef_home: Home, tmp_path: Path, name: str, mode: ModeName
) -> None:
    with installed(reef_home, tmp_path / "user", name, mode) as case:
        case.provider.reply = _reads_skill
        release = chain.approved(reef_home, chain.HARNESS)
        ask = ("exec", "--skip-git-repo-check") if name == "codex" else case.tested.ask  # in its sandbox
        done = case.run(*ask, "greet them")
        assert (done.returncode, "does not take" in done.stderr) == (0, False), done
        last = case.asked()[-1]
        assert chain.SKILL.splitlines()[-1] in json.dumps([one for one in last["messages"] if one["role"] == "tool"])
        system = json.dumps([one for one in last["messages"] if one["role"] in ("system", "developer")])
        assert "- sum: A summary. (/" in system
        assert system.index("/sum/SKILL.md") < system.index(harness.mark(release.id))
        assert case.daemon.get("/reef/records")["items"][0]["release_id"] == release.id


@pytest.mark.parametrize("mode", ["isolated", "overlay"])
def test_pi_runs_a_releases_servers_beside_the_persons_own(reef_home: Home, tmp_path: Path, mode: ModeName) -> None:
    """BUGS B107: their file, with a mark at its beginning and a setting nobody knows, is read by Pi alone. What Pi
    writes into it stays there.
    """
    user, begun = tmp_path / "user", tmp_path / "begun"
    begun.mkdir()
    with installed(reef_home, user, "pi", mode) as case:
        theirs = user / ".pi" / "agent" if mode == "overlay" else reef_home.agents / "pi" / "user"
        theirs.mkdir(parents=True)
        own = {"mcpServers": {name: _server(begun / f"{name}-own") for name in ("mine", "both")}, "unknown": [1]}
        written = b"\xef\xbb\xbf" + json.dumps(own).encode() + b"\r\n"
        (theirs / "mcp.json").write_bytes(written)
        servers = {"mcpServers": {name: _server(begun / f"{name}-reef") for name in ("both", "new")}}
        _, waits = case.daemon.control("POST", "/reef/harness/proposals", {"files": {"mcp.json": json.dumps(servers)}})
        assert case.daemon.control("POST", f"/reef/releases/{waits['id']}/approve", {})[0] == 200
        assert case.run(*case.tested.ask, PROMPT).returncode == 0
        until(lambda: len(list(begun.iterdir())) >= 3, "the servers were started")
        assert {path.name for path in begun.iterdir()} == {"mine-own", "both-own", "new-reef"}
        assert (theirs / "mcp.json").read_bytes() == written
        if mode == "isolated":
            assert case.run("mcp", "add", "later", "--", "true").returncode == 0
            kept = json.loads((theirs / "mcp.json").read_text("utf-8-sig"))
            assert (set(kept["mcpServers"]), kept["unknown"]) == ({"mine", "both", "later"}, [1])


def test_claude_codes_own_log_of_servers_leaves_the_persons_caches_alone(reef_home: Home, tmp_path: Path) -> None:
    """Commands see their cache folder as it is set, or not, in that run. Hooks and servers see the one that none set
    stands for."""
    user, seen = tmp_path / "user", tmp_path / "seen"
    tells = 'echo "cache: ${XDG_CACHE_HOME-unset}"'
    server = ["-c", f"{tells} >> '{seen}'; exec '{sys.executable}' '{mcp_server.__file__}' '{tmp_path / 'asked'}'"]
    files = {"mcp.json": json.dumps({"mcpServers": {"beacon": {"command": "sh", "args": server}}})}
    own = {"SessionStart": [{"hooks": [{"type": "command", "command": f"{tells} >> '{seen}'"}]}]}
    with installed(reef_home, user, "claude-code", "isolated") as case:
        chain.approved(reef_home, {**chain.HARNESS, **files})
        kept = reef_home.agents / "claude-code" / "user"
        kept.mkdir(parents=True)
        (kept / "settings.json").write_text(json.dumps({"hooks": own}))
        case.provider.turns = (Turn("", (bash(tells),)), TASK[-1])
        for theirs in ({}, {"XDG_CACHE_HOME": "/their/own"}, {}):
            words = case.tested.again if seen.exists() else case.tested.ask
            seen.write_text("")
            assert case.run(*words, PROMPT, **theirs).returncode == 0
            told, stands = theirs.get("XDG_CACHE_HOME", "unset"), theirs.get("XDG_CACHE_HOME", f"{user}/.cache")
            assert f"cache: {told}" in json.dumps(case.asked()[-1]["messages"][-1])
            assert seen.read_text() == f"cache: {stands}\n" * 2
        assert [path.name for path in user.rglob("*")] == ["project"]
        assert list((kept / "cache").rglob("mcp-logs-beacon"))


@pytest.mark.parametrize("mode", MODES)
def test_what_opencode_runs_finds_the_persons_folders(reef_home: Home, tmp_path: Path, mode: ModeName) -> None:
    """And none of what Reef sets for OpenCode alone."""
    names = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "npm_config_cache", "OPENCODE_CONFIG", "REEF_TOKEN")
    tells = f"echo {' '.join(f'${{{name}-unset}}' for name in names)}."
    with installed(reef_home, tmp_path / "user", "opencode", mode) as case:
        case.provider.turns = (Turn("", (bash(tells),)), TASK[-1])
        for cache in ({}, {"XDG_CACHE_HOME": str(tmp_path / "theirs")}):
            assert case.run(*case.tested.ask, PROMPT, **cache).returncode == 0
            shown = cache.get("XDG_CACHE_HOME", "unset")
            assert f"unset {shown} unset unset unset unset." in str(case.asked()[-1]["messages"])


def _server(mark: Path) -> dict[str, Any]:
    """One that leaves a mark and never answers."""
    return {"command": "sh", "args": ["-c", f"touch '{mark}'; exec cat >/dev/null"]}
