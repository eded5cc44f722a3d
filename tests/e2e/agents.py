"""Real coding agents from their registries: where each comes from and how it is asked, beside `adapters.pointing`.

An install is kept for every clone of this user, as the default model is. The agent gets a HOME of its own and an
environment of nothing but what is named here: it must run on what `reef env AGENT` says and on no setting of the person
who tests.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from adapters import machine, pointing
from adapters.machine import find_node
from adapters.pointing import Pointing
from reef_cli.commands import env
from tests import default_model
from tests.fakes import shapes
from tests.fakes.provider import TASK, Turn, bash

_CACHE: Final = default_model.home().root.parent / "agents"
Node = Literal["own", "new"]
_UV: Final = "uv==0.13.9"
#: That runs them all.
OLDEST_NODE: Final = (22, 19)


@dataclass(frozen=True, slots=True)
class Agent:
    """``package`` is npm's unless ``pip``; ``program`` is below the install, run by ``node`` where that is said.
    ``ask`` comes before the prompt, ``again`` instead of it to go on with the last conversation. ``script`` answers
    instead of the scripted task, for an agent with ways of its own. ``sides`` are its calls beside the conversation.
    """

    pointing: Pointing
    package: str
    program: str
    ask: tuple[str, ...]
    again: tuple[str, ...] = ()
    pip: bool = False
    node: Node | None = None
    quiet: Mapping[str, str] = field(default_factory=dict)
    script: Callable[[Any], Turn] | None = None
    stored_as: str = ""
    sides: int = 0
    turns: int = 3
    calls: int = 3
    #: How the three tools of the task ended, as far as the agent tells: OpenCode tells nobody.
    statuses: tuple[int | None, ...] = (0, 0, 3)
    streams: bool = True
    #: How it is started in a terminal and what is there once it listens; ``seeds``: files of its home that answer what
    #: it would ask a person at its first start.
    terminal: tuple[str, ...] | None = None
    listens: str = ""
    seeds: Mapping[str, str] = field(default_factory=dict)
    #: There it asks after each answer what the person may type next.
    guesses: bool = False
    #: After a broken answer it sends what it got and asks for the rest, instead of the same request again.
    resumes: bool = False

    def argv(self, root: Path, *words: str) -> list[str]:
        """As the README runs it, with more words."""
        start = [str(node(self.node))] if self.node else []
        return [*start, str(root / self.program), *self.pointing.command.split()[1:], *words]

    def environment(self, home: Path, url: str, token: str, key: str) -> dict[str, str]:
        """As a shell has it after `reef env AGENT --keep-keys`, with the person's ``key``; writes the file it names."""
        told = env.keyless(url, token) | dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"), key)
        if self.pointing.file:
            file = home / self.pointing.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.pointing.filled(f"{url}/t/{token}"))
        path = f"{node(self.node).parent}:/usr/bin:/bin" if self.node else "/usr/bin:/bin"
        own = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}
        return {**own, **self.quiet, **self.pointing.fixed, **{name: told[name] for name in self.pointing.variables}}


def _submits(asked: Any) -> Turn:
    """mini-swe-agent ends by a command, not by an answer without one."""
    last = Turn(TASK[2].text, (bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),))
    return [*TASK[:2], last][min(shapes.Chat(asked, 0).answered(), 2)]


def _edits(asked: Any) -> Turn:
    """aider has no tools: the answer is the edit. Its commit message it asks for unstreamed."""
    edit = "hello.txt\n```\n<<<<<<< SEARCH\n=======\nhello-reef\n>>>>>>> REPLACE\n```\n"
    return Turn(f"{TASK[2].text}\n\n{edit}") if asked.get("stream") else Turn("feat: add hello.txt")


def _guesses(asked: Any) -> Turn:
    """Qwen Code in a terminal wants to know after an answer what comes next, and at /compress what was said."""
    said = str(asked["messages"][-1]["content"])
    if "You are the component that summarizes" in said:
        goal, known = "create hello.txt as they asked", "hello.txt is there, 11 bytes"
        return Turn(f"<state_snapshot><goal>{goal}</goal><known>{known}</known></state_snapshot>")
    return Turn("run it again") if "[SUGGESTION MODE:" in said else TASK[min(shapes.Chat(asked, 0).answered(), 2)]


_PI: Final = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
_TO: Final = pointing.AGENTS

AGENTS: Final = {
    "pi": Agent(
        _TO["pi"],
        "@earendil-works/pi-coding-agent@1.6.0",
        "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
        ("-p",),
        again=("-c", "-p"),
        node="new",
        quiet=_PI,
        stored_as="pi",
        statuses=(None, None, 3),
    ),
    "pi-0.74": Agent(
        _TO["pi"],
        "@earendil-works/pi-coding-agent@0.74.2",
        "node_modules/@earendil-works/pi-coding-agent/dist/cli.js",
        ("-p",),
        again=("-c", "-p"),
        node="own",
        quiet=_PI,
        stored_as="pi",
        statuses=(None, None, 3),
    ),
    "claude-code": Agent(
        _TO["claude-code"],
        "@anthropic-ai/claude-code@2.1.332",
        "node_modules/@anthropic-ai/claude-code/bin/claude.exe",
        ("-p", "--allowedTools", "Bash", "--"),
        again=("-c", "-p", "--allowedTools", "Bash", "--"),
        quiet={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
        },
        stored_as="claude-code",
        terminal=("--allowedTools", "Bash", "--permission-mode", "default"),
        listens="manual mode on",
        seeds={
            ".claude.json": '{"hasCompletedOnboarding": true,'
            ' "projects": {"$PROJECT": {"hasTrustDialogAccepted": true}}}'
        },
    ),
    "opencode": Agent(
        _TO["opencode"],
        "opencode-ai@1.18.33",
        "node_modules/opencode-ai/bin/opencode.exe",
        ("run",),
        again=("run", "--continue"),
        quiet={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        stored_as="opencode",
        terminal=(),
        listens="Ask anything",
        statuses=(None, None, None),
        sides=1,  # the title
    ),
    "qwen-code": Agent(
        _TO["qwen-code"],
        "@qwen-code/qwen-code@0.24.4",
        "node_modules/@qwen-code/qwen-code/cli-entry.js",
        ("--yolo", "-p"),
        again=("--continue", "--yolo", "-p"),
        node="new",
        stored_as="qwen-code",
        terminal=("--yolo",),
        listens="Type your message",
        script=_guesses,
        guesses=True,
        resumes=True,
    ),
    "aider": Agent(
        _TO["aider"],
        "aider-chat==0.86.2",
        "bin/aider",
        ("--edit-format", "diff", "--yes-always", "--no-check-update", "--message"),
        pip=True,
        quiet={"AIDER_ANALYTICS": "false"},
        script=_edits,
        stored_as="aider",
        sides=1,  # the commit's message
        turns=1,
        calls=0,
        statuses=(),
    ),
    "mini-swe-agent": Agent(
        _TO["mini-swe-agent"],
        "mini-swe-agent==2.4.6",
        "bin/mini",
        ("-y", "--exit-immediately", "-o", "traj.json", "-t"),
        pip=True,
        script=_submits,
        stored_as="mini-swe-agent",
        calls=4,  # and the one that ends it
        streams=False,
    ),
    "hermes": Agent(
        _TO["hermes"],
        "hermes-agent==0.19.0",
        "bin/hermes",
        ("--yolo", "-q"),
        again=("--continue", "--yolo", "-q"),
        pip=True,
        stored_as="hermes",
        terminal=("--yolo",),
        listens="\u276f",
        sides=1,  # the title
        resumes=True,
    ),
}


@cache
def node(which: Node) -> Path:
    """The machine's own Node.js, or one of a package where that is too old for today's agents."""
    own = find_node()
    assert own is not None, "the tests need Node.js with npm"
    if which == "own" or own.version >= OLDEST_NODE:
        return own.path
    package = machine.packaged_node()
    assert package is not None, "there is no package of Node.js for this machine"
    root = _kept(package.spec, lambda root: _npm(root, package.spec, os.environ["PATH"]))
    return root / "node_modules" / package.name / "bin" / "node"


def installed(agent: Agent) -> Path:
    """The kept install; made when it is not there."""
    if agent.pip:
        return _kept(agent.package, lambda root: _pip(root, agent.package))
    path = os.environ["PATH"]
    if agent.node:
        path = f"{node(agent.node).parent}:{path}"
    return _kept(agent.package, lambda root: _npm(root, agent.package, path))


def _kept(package: str, install: Callable[[Path], None]) -> Path:
    root = _CACHE / package.replace("/", "+").replace("==", "@")  # mini-swe-agent reads a path with "=" as a setting
    root.parent.mkdir(parents=True, exist_ok=True)
    with (_CACHE / f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            install(root)
            (root / "complete").touch()
    return root


def _run(*command: str, **environment: str) -> None:
    """Registry, proxy and certificates are as the machine has them; the installer's own home is not."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}: {done.stdout[-1500:]}{done.stderr[-1500:]}"


def _npm(root: Path, package: str, path: str) -> None:
    private = root / "npm-home"
    environment = {"PATH": path, "HOME": str(private), "npm_config_cache": str(private / "cache")}
    own = Path.home() / ".npmrc"
    if own.exists():
        environment["npm_config_userconfig"] = str(own)
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    _run("npm", "install", "--prefix", str(root), *quiet, package, **environment)
    shutil.rmtree(private, ignore_errors=True)


def _pip(root: Path, package: str) -> None:
    """With uv, which takes seconds where pip takes minutes."""
    uv = str(_kept(_UV, _uv) / "bin" / "uv")
    python, cache = str(root / "bin" / "python"), str(_CACHE / "uv-cache")
    _run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(root))
    _run(uv, "pip", "install", "--quiet", "--python", python, package, UV_CACHE_DIR=cache)


def _uv(root: Path) -> None:
    _run(sys.executable, "-m", "venv", str(root))
    _run(str(root / "bin" / "python"), "-m", "pip", "install", "--quiet", _UV)
