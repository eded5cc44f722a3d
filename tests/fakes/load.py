"""The two ends of a load as processes of their own, so that they can be killed too.

    python -m tests.fakes.load provider PORT
    python -m tests.fakes.load client HOME LIST SEED

A client asks in every dialect, streamed and not, of every engine, whatever happens to its daemon; each response that
it saw to its very end is a line of LIST: the receipt, or ``! ...`` for what should not have come.
"""

import json
import random
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TextIO

from daemon.core.discovery import read_state
from daemon.core.errors import ReefError
from daemon.core.paths import Home
from reef_cli.lifecycle import ensure_daemon
from tests.fakes.provider import Turn, running_provider

#: Path, and the field that limits an answer's length.
ROUTES = {"/v1/chat/completions": "max_tokens", "/v1/messages": "max_tokens", "/v1/responses": "max_output_tokens"}
MODELS = ("inside", "outside", "translated")


def provider(port: int) -> None:
    with running_provider((Turn("An answer of several words, so that a stream takes a while."),), port=port) as serving:
        serving.pace = 0.01
        sys.stdin.read()


def client(home: Home, ended: TextIO, chance: random.Random) -> None:
    turn = 0
    while True:
        turn += 1
        path = chance.choice(list(ROUTES))
        said = f"turn {turn} of {chance.random()}"
        asked = {"input": said} if path.endswith("responses") else {"messages": [{"role": "user", "content": said}]}
        body = {"model": chance.choice(MODELS), "stream": chance.random() < 0.7, ROUTES[path]: 16, **asked}
        try:
            exchange(home, ended, path, body)
        except (OSError, HTTPException):
            with suppress(ReefError):
                ensure_daemon(home)  # what every command and wrapper does


def exchange(home: Home, ended: TextIO, path: str, body: dict[str, Any]) -> None:
    state = read_state(home)
    if state is None:
        raise ConnectionError("no daemon")
    connection = HTTPConnection("127.0.0.1", state.port, timeout=60)
    try:
        headers = {"content-type": "application/json", "x-api-key": home.agent_token.read_text()}
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        raw = response.read()  # raises IncompleteRead unless the end was seen
        receipt = response.getheader("x-reef-agent-record-id")
        if response.status not in (200, 502, 503) or receipt is None:
            print(f"! {response.status} {path} {raw[:300]!r}", file=ended, flush=True)
        else:
            print(receipt, file=ended, flush=True)
        if response.status != 200:
            time.sleep(0.05)
    finally:
        connection.close()


def main() -> None:
    role, *rest = sys.argv[1:]
    if role == "provider":
        provider(int(rest[0]))
    else:
        with Path(rest[1]).open("a") as ended:
            client(Home(Path(rest[0])), ended, random.Random(int(rest[2])))


if __name__ == "__main__":
    main()
