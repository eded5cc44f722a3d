"""The demo's last step: the real coding agent Pi, wrapped, on the release that serves."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from adapters import agent, apply, plan, receipt
from adapters.machine import find_node
from adapters.plan import Choice
from daemon.core.client import Client
from daemon.core.errors import NotFound, ReefError
from daemon.core.paths import Home
from reef_cli import diagnostics
from reef_cli.demo.story import Facts, Story

_PROMPT: Final = "What is a coral reef?"
_SECONDS: Final = 900.0


def pi(place: Home, story: Story, scenario: str) -> Facts:
    """Install Pi if it is not there (choices made before stay), and let it do one task."""
    adapter = agent.load(place, "pi")
    if receipt.read(place.root, adapter.name) is None:
        node = find_node()
        if node is None:
            story.say("left out: there is no Node.js with npm on this machine")
            return {"skipped": "there is no Node.js with npm on this machine"}
        apply.apply(plan.plan(adapter, place, Choice(), node), diagnostics.say)
    story.say(f"$ REEF_SCENARIO={scenario} reef-pi -p {_PROMPT!r}")
    answer = _answer(place.commands / adapter.command, scenario)
    for line in answer.splitlines():
        story.say(line)
    session = Client(place.socket).get("/reef/sessions", scenario=scenario, limit=1)["items"][0]
    if session["agent"] != adapter.name:
        raise NotFound("Pi answered, but its exchange is not recorded", hint="reef logs")
    story.say(f"session {session['id']}, release and working directory recorded with it")
    return {"version": adapter.version, "answer": answer, "session": session["id"], "turns": session["turns"]}


def _answer(command: Path, scenario: str) -> str:
    """Run the wrapper on one prompt in an empty repository; what the agent printed."""
    with tempfile.TemporaryDirectory(prefix="reef-demo-") as directory:
        (Path(directory) / ".git").mkdir()
        try:
            done = subprocess.run(
                [str(command), "-p", _PROMPT],
                cwd=directory,
                env={**os.environ, "REEF_SCENARIO": scenario},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ReefError(f"Pi has not answered for {_SECONDS:.0f} s", hint="reef status") from error
    if done.returncode != 0 or not done.stdout.strip():
        words = (done.stderr or done.stdout).strip()[-500:]
        raise ReefError(f"Pi ended with {done.returncode}: {words or 'it said nothing'}", hint="reef logs")
    return done.stdout.strip()
