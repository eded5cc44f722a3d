"""`reef traces changes · raw · curl`."""

import os
import subprocess
from typing import Any

from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def test_changes_say_what_was_added(served: Served, cli: Reef) -> None:
    first = served.ask("changes: one", answer="an answer")
    second = served.converse(*said("changes: one", "an answer", "and \x1b[31mtwo"))
    out = cli("traces", "changes", second).out
    assert f"{second} after {first}" in out
    assert "+ added: user, 12 characters: and \\x1b[31mtwo" in out
    assert cli("traces", "changes", second, "--json").json()["previous"] == first
    assert "first request there" in cli("traces", "changes", first).out


def test_raw_is_the_body_and_inert(served: Served, cli: Reef) -> None:
    receipt = served.ask("raw \u202e \x9b2J é")
    out = cli("traces", "raw", receipt).out
    assert (out.startswith('{"model"'), "\x9b" in out, "\u202e" in out) == (True, False, False)
    assert "an answer" in cli("traces", "raw", receipt, "--side", "response").out
    assert "raw " in cli("traces", "raw", receipt, "--json").json()["request"]


def test_curl_sends_it_again_without_showing_the_token(served: Served, cli: Reef) -> None:
    """BUGS B112: nor to a proxy of the environment's, which has a page of its own for what it cannot reach."""
    receipt = served.ask("it's to be sent again", scenario="work/again")
    command = cli("traces", "curl", receipt).out
    assert served.daemon.agent_token.strip() not in command
    environment = {
        "PATH": os.environ["PATH"], "REEF_URL": served.daemon.url, "REEF_TOKEN": served.daemon.agent_token.strip(),
        "http_proxy": "http://127.0.0.1:9",
    }  # fmt: skip
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=True)
    assert "an answer" in done.stdout
    last = served.daemon.get("/reef/last")
    assert (last["receipt"] != receipt, last["scenario"]) == (True, "work/again")


def test_a_long_body_is_piped_in(served: Served, cli: Reef) -> None:
    receipt = served.ask("long " * 9000)
    command = cli("traces", "curl", receipt).out
    assert command.startswith(f"reef traces raw {receipt} | curl ")
    assert len(command) < 500
