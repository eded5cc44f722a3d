"""`reef env`: the variables that make the OpenAI and Anthropic clients of a shell talk to Reef, or one agent.

The variables are the answer, for `eval`; what a person must do besides goes to stderr. The agent's file is theirs:
it is read to see whether it names this Reef, and never written.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from daemon.core.errors import NotFound
from daemon.core.paths import home
from reef_cli import diagnostics, output, proxies
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

if TYPE_CHECKING:
    from adapters.pointing import Pointing

Shell = Literal["sh", "fish"]
#: Those of `adapters.pointing`, which only a command with an agent's name imports.
_AGENTS = "claude-code, codex, pi, opencode, qwen-code, aider, mini-swe-agent or hermes"


def env(
    agent: Annotated[
        str | None, Help(f"Only what this coding agent takes, and the file that it needs: {_AGENTS}.")
    ] = None,
    *,
    shell: Annotated[Shell, Help("Whose syntax.")] = "sh",
    keep_keys: Annotated[
        bool, Help("Leave the keys as they are, for a provider; Reef's token is in the address.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Starts the daemon, so that the address is true. The token is for inference and feedback only."""
    told = None if agent is None else pointing(agent)
    place = home()
    status = ensure_daemon(place).get("/reef/status")
    url = str(status["url"])
    token = place.agent_token.read_text().strip()
    variables = keyless(url, token) if keep_keys else environment(url, token)
    if told is not None:
        variables = {name: variables[name] for name in told.variables if name in variables} | dict(told.fixed)
    variables |= proxies.around(os.environ)
    text = "" if told is None else told.filled(f"{url}/t/{token}" if keep_keys else url, status["context"])
    if as_json:
        output.json({"env": variables} | ({} if told is None else _described(told, text)))
        return
    for name, value in variables.items():
        output.line(f"set -gx {name} {_fish(value)};" if shell == "fish" else f"export {name}={_posix(value)}")
    if told is not None:
        _say(told, text)
    elif sys.stdout.isatty():
        diagnostics.say('to use it: eval "$(reef env)"')


def pointing(agent: str) -> "Pointing":
    """What is known of an agent. Raises NotFound with those that there are."""
    from adapters.pointing import AGENTS  # not at import: `reef env` alone is hot

    if agent not in AGENTS:
        near = [name for name in AGENTS if agent and (agent in name or name in agent)]
        hint = f"reef env {near[0]}" if len(near) == 1 else f"one of {', '.join(AGENTS)}; or: reef env"
        raise NotFound(f"no agent is called {agent!r}", hint=hint)
    return AGENTS[agent]


def _described(told: "Pointing", text: str) -> dict[str, object]:
    file = {"path": told.place(os.environ), "text": text} if told.file else None
    return {"file": file, "command": told.command}


def _say(told: "Pointing", text: str) -> None:
    """The file only where it does not name this Reef yet: a shell may run this at every start."""
    place = told.place(os.environ)
    if told.file and not _holds(Path(place).expanduser(), text):
        diagnostics.say(f"{told.title} needs this in {place}, which is yours to write:\n{text}")
    if sys.stdout.isatty():
        diagnostics.say(f"then, in a shell with these variables: {told.command}")


def _holds(file: Path, text: str) -> bool:
    try:
        there = file.read_text("utf-8", "replace")
    except OSError:
        return False
    return all(line.strip(" ,") in there for line in text.splitlines())


def environment(url: str, token: str) -> dict[str, str]:
    """Both vendors' names, with and without ``/v1`` as their clients expect, and Reef's own."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": token,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": token,
        "ANTHROPIC_API_KEY": token,
        "REEF_URL": url,
        "REEF_TOKEN": token,
    }


def keyless(url: str, token: str) -> dict[str, str]:
    """The same without the keys: those are the person's own, for a provider behind Reef (``key: agent``)."""
    own = f"{url}/t/{token}"
    return {
        "OPENAI_BASE_URL": f"{own}/v1",
        "OPENAI_API_BASE": f"{own}/v1",
        "ANTHROPIC_BASE_URL": own,
        "REEF_URL": url,
        "REEF_TOKEN": token,
    }


def _posix(value: str) -> str:
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
