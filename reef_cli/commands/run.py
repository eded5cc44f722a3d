"""`reef run -- CMD`: any program that asks a model, pointed at Reef by the usual variables. Nothing is wrapped.

The program takes this process's place: terminal, signals and exit code are its own.
"""

import os
import shutil
from pathlib import Path
from typing import Annotated

from daemon.core.errors import NotFound
from daemon.core.ids import new_id
from daemon.core.paths import home
from reef_cli import declared, proxies
from reef_cli.becoming import become
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help


def run(
    command: Annotated[list[str], Help("The program and what it takes, after --.")],
    *,
    scenario: Annotated[str | None, Help("What its records belong to.")] = None,
    keep_keys: Annotated[bool, Help("Leave the keys as they are, for a provider.")] = False,
    as_json: AsJson = False,
) -> None:
    """Starts the daemon. The program's records carry the working directory, its commit and the run's id; `reef good` in
    a shell of it rates its last answer. An agent that reads its address from a file of its own needs
    `reef env AGENT` or `reef harness install`.
    """
    program = shutil.which(command[0])
    if program is None:
        raise NotFound(f"there is no program {command[0]!r}", hint="reef run -- PROGRAM ARGUMENTS")
    place = home()
    url = str(ensure_daemon(place).get("/reef/status")["url"])
    token = place.agent_token.read_text().strip()
    told = {"REEF_RUN": new_id("run"), "REEF_SCENARIO": scenario or os.environ.get("REEF_SCENARIO") or "default"}
    said = declared.headers(told["REEF_RUN"], told["REEF_SCENARIO"], Path.cwd())
    address = declared.address(url, token, said)
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"), token)
    variables = {
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_BASE": f"{address}/v1",
        "ANTHROPIC_BASE_URL": address,
        **({} if keep_keys else keys),
        **told,
        "REEF_URL": url,
        "REEF_TOKEN": token,
        "REEF_HOME": str(place.root),
        **proxies.around(os.environ),
    }
    become(program, command, {**os.environ, **variables})
