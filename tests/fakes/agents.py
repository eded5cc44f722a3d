"""A program in the agent's place that tells how it was run and what it finds: to see what a wrapper does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from adapters import agent, plan, receipt
from adapters.agent import ModeName
from adapters.machine import Node, Program
from adapters.plan import Choice, InstallPlan, OnDaemonDown, Upgrade
from daemon.core.paths import Home, private_directory, write_private

NODE = Node(Path(sys.executable), (26, 12, 1), Path("/nowhere/npm"))
_PROGRAM = """
import json, os, sys, time
from pathlib import Path
directory = Path(os.environ.get("PI_CODING_AGENT_DIR", "/nowhere"))
def text(name):
    path = directory / name
    return path.read_text() if path.exists() else None
print(json.dumps({
    "arguments": sys.argv[1:],
    "directory": str(directory),
    "release": os.path.realpath(directory / "release"),
    "rules": text("AGENTS.md"),
    "reef": json.loads(text("reef.json") or "null"),
    "models": json.loads(text("models.json") or "null"),
    "environment": dict(os.environ),
    "pid": os.getpid(),
}), flush=True)
if "ASKS" in os.environ:
    import urllib.error, urllib.request
    (provider,) = json.loads(text("models.json"))["providers"].values()
    token = Path(json.loads(text("reef.json"))["token_file"]).read_text()
    headers = {**provider["headers"], "authorization": "Bearer " + token, "content-type": "application/json"}
    body = json.dumps({"model": "default", "messages": [{"role": "user", "content": sys.argv[-1]}]}).encode()
    request = urllib.request.Request(provider["baseUrl"] + "/chat/completions", body, headers)
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
    except urllib.error.HTTPError as error:
        print(error.read().decode(), flush=True)
if "--wait" in sys.argv:
    sys.stdin.read()
    print(json.dumps({"rules": text("AGENTS.md")}), flush=True)
sys.exit(int(os.environ.get("EXIT", "0")))
"""


class Seen(NamedTuple):
    code: int
    told: dict[str, Any]
    err: str


def install(
    home: Home,
    *,
    scenario: str = "default",
    upgrade: Upgrade = "auto",
    mode: ModeName = "isolated",
    on_daemon_down: OnDaemonDown = "fail",
) -> InstallPlan:
    """What an install leaves, with the program above in Pi's place."""
    home.prepare()
    choice = Choice(scenario, upgrade, mode=mode, on_daemon_down=on_daemon_down)
    made = plan.plan(agent.load(home, "pi"), home, choice, NODE)
    program(home).parent.mkdir(parents=True, exist_ok=True)
    program(home).write_text(_PROGRAM)
    _put(made)
    return made


def wrap(home: Home, name: str, words: Sequence[str], **choice: Any) -> str:
    """What an install leaves of an agent that is there already and runs by ``words``: the command to call instead."""
    made = plan.found_plan(agent.load(home, name), home, Choice(**choice), Program(tuple(words), "1.0"))
    _put(made)
    return str(home.root / made.wrapper)


def _put(made: InstallPlan) -> None:
    for file in made.files:
        private_directory((made.home / file.path).parent)
        write_private(made.home / file.path, file.text.encode())
        (made.home / file.path).chmod(file.mode)
    receipt.write(made, ())


def program(home: Home) -> Path:
    return home.agents / "pi/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"


def command(home: Home) -> str:
    return str(home.commands / "reef-pi")


def run(home: Home, *words: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Seen:
    """``reef-pi`` with these words, to its end."""
    done = subprocess.run(
        [command(home), *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Seen(done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr)
