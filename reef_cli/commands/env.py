"""`reef env`: the variables that make any OpenAI or Anthropic client of a shell talk to Reef."""

import sys
from typing import Annotated, Literal

from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

Shell = Literal["sh", "fish"]


def env(
    *,
    shell: Annotated[Shell, Help("Whose syntax.")] = "sh",
    keep_keys: Annotated[
        bool, Help("Leave the keys as they are, for a provider; Reef's token is in the address.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Starts the daemon, so that the address is true. The token is for inference and feedback only."""
    place = home()
    url = str(ensure_daemon(place).get("/reef/status")["url"])
    token = place.agent_token.read_text().strip()
    variables = keyless(url, token) if keep_keys else environment(url, token)
    if as_json:
        output.json({"env": variables})
        return
    for name, value in variables.items():
        output.line(f"set -gx {name} {_fish(value)};" if shell == "fish" else f"export {name}={_posix(value)}")
    if sys.stdout.isatty():
        diagnostics.say('to use it: eval "$(reef env)"')


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
