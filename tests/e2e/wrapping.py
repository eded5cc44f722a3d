"""An agent that Reef wraps, installed both ways for a person with files of their own, and what is seen of it."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from adapters import agent, plan
from adapters.machine import Node
from adapters.plan import Choice
from adapters.session import Place
from daemon.core.paths import Home, private_directory
from tests.e2e import agents
from tests.e2e.agents import Agent
from tests.e2e.terminal import Terminal
from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Provider

SCENARIO = "work/agents"


class Installed:
    """One agent in one mode. ``user`` is the person's HOME; ``trees`` what either way of installing left. ``version``:
    not the one that Reef would take."""

    def __init__(
        self,
        daemon: RunningDaemon,
        provider: Provider,
        user: Path,
        *,
        adapter: str,
        mode: str = "isolated",
        version: str | None = None,
    ) -> None:
        self.daemon, self.provider, self.user = daemon, provider, user
        self.adapter, self.mode, self.version = adapter, mode, version
        self.home = daemon.home
        self.place = Place(self.home.agents / adapter)
        self.command = str(self.home.commands / agent.load(self.home, adapter).command)
        self.environment = {"HOME": str(user), "REEF_HOME": str(self.home.root), "TERM": "xterm-256color"}
        self.before = digests(user)
        self.trees: list[dict[str, str]] = []

    def run(self, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.command, *words],
            cwd=folder,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def reef(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "reef_cli.main", *words],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def answered(self, *words: str) -> Any:
        """What ``reef … --json`` says, which must succeed."""
        done = self.reef(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def install_both_ways(self, downloads: Path) -> None:
        """By the command, then by the script that curl gets. What npm loads for the first serves the second, too."""
        version = ("--agent-version", self.version) if self.version else ()
        chosen = ("--adapter", self.adapter)
        self.lend(downloads)
        done = self.reef("harness", "install", *chosen, "--mode", self.mode, "--scenario", SCENARIO, *version)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{self.command}\n"
        self.trees.append(digests(self.home.root, "agents", "bin"))
        assert self.answered("harness", "uninstall", *chosen)["kept"] == []
        assert not self.place.root.exists()
        assert any(downloads.iterdir())
        self.install(downloads)

    def install(self, downloads: Path) -> None:
        """By the script alone."""
        self.lend(downloads)
        piped = subprocess.run(
            ["bash"],
            input=self.script(),
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert piped.returncode == 0, piped.stderr
        self.trees.append(digests(self.home.root, "agents", "bin"))

    def script(self) -> str:
        """As curl gets it."""
        connection = HTTPConnection("127.0.0.1", self.daemon.port, timeout=60)
        token = {"authorization": f"Bearer {self.daemon.agent_token}"}
        version = f"&agent_version={self.version}" if self.version else ""
        chosen = f"adapter={self.adapter}&mode={self.mode}&scenario={SCENARIO}{version}"
        connection.request("GET", f"/reef/harness/install?{chosen}", headers=token)
        response = connection.getresponse()
        assert response.status == 200
        text = response.read().decode()
        connection.close()
        return text

    def lend(self, downloads: Path) -> None:
        """Put npm's downloads where the next install keeps its own: both ways fetch them once."""
        private = self.place.root / "private"
        private.mkdir(parents=True)
        (private / "cache").symlink_to(downloads)

    def asked(self) -> str:
        """The system prompt of the last request that reached the provider."""
        said = self.provider.requests[-1].json()["messages"]
        return json.dumps([message["content"] for message in said if message["role"] in ("system", "developer")])

    def told(self) -> str:
        """All of the last request that was a turn."""
        return json.dumps(self._turn())

    def model(self) -> str:
        """The one that the last turn asked the provider for."""
        return str(self._turn()["model"])

    def effort(self) -> str:
        """What the last turn said of how much to think, in whichever dialect."""
        return json.dumps([self._turn().get(name) for name in ("reasoning_effort", "reasoning", "output_config")])

    def _turn(self) -> dict[str, Any]:
        """No title's, which has no tools."""
        bodies: list[dict[str, Any]] = [one.json() for one in self.provider.requests]
        return [body for body in bodies if body.get("tools")][-1]

    def sessions(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.daemon.get(f"/reef/sessions?scenario={SCENARIO}")["items"]
        return items

    def requests(self) -> list[tuple[str, str, dict[str, str]]]:
        """(cwd, commit, tags) of every recorded request, oldest first."""
        with sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True) as db:
            rows = db.execute("SELECT cwd, git_commit, tags FROM request ORDER BY seq").fetchall()
        db.close()
        return [(cwd, commit, json.loads(tags)) for cwd, commit, tags in rows]

    @contextmanager
    def terminal(self, folder: Path, *words: str) -> Iterator[Terminal]:
        terminal = Terminal(self.home.run / f"tmux-{self.adapter}")
        terminal.start([self.command, *words], folder, {**self.environment, "REEF_POLL_SECONDS": "0.5"})
        try:
            yield terminal
        finally:
            terminal("kill-server")


def digests(folder: Path, *names: str) -> dict[str, str]:
    """Path → mode and sha256 of everything below (or below ``names`` in it)."""
    found = {}
    for top in [folder / name for name in names] or [folder]:
        for path in [top, *top.rglob("*")]:
            content = (
                os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            )
            found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


def put(home: Home, adapter: str, choice: Choice, tested: Agent) -> Path:
    """What an install leaves, its packages those that the other tests keep: the command that a person calls."""
    root, node = agents.installed(tested), Node(agents.node("new"), (26, 12, 1), Path("npm"))
    made = plan.plan(agent.load(home, adapter), home, choice, node)
    private_directory(made.root)
    if adapter == "codex":  # npm has the program of this machine under a name of its own
        private_directory(made.root / "node_modules" / "@openai")
        (program,) = (root / "node_modules" / "@openai").glob("codex-*")
        (made.root / "node_modules" / "@openai" / "codex").symlink_to(program)
    else:
        (made.root / ("venv" if made.pip else "node_modules")).symlink_to(root if made.pip else root / "node_modules")
    for file in made.files:
        private_directory((home.root / file.path).parent)
        (home.root / file.path).write_text(file.text)
        (home.root / file.path).chmod(file.mode)
    return home.root / made.wrapper


def project(folder: Path) -> Path:
    """A repository of the person's, with a commit."""
    folder.mkdir()
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    return folder
