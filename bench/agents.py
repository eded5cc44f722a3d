"""``python -m bench.agents HOME [--at-once 10] [--records N] [--chunks 60] [--pace 40]``: agents at a daemon.

Each asks with a conversation of its own, streamed, that goes on for some turns; then it begins another. A process
of its own, so that it costs what it measures no time. ``--chunks`` and ``--pace`` (milliseconds between two of them)
are what upstream.c makes of a request.
"""

import argparse
import json
import threading
from http.client import HTTPConnection
from itertools import count
from pathlib import Path

from daemon.core.discovery import read_state
from daemon.core.paths import Home

_TURNS = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agents")
    parser.add_argument("home", type=Path)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--records", type=int, default=1 << 40)
    parser.add_argument("--chunks", type=int, default=60)
    parser.add_argument("--pace", type=int, default=40)
    options = parser.parse_args()
    numbers = count(1)
    threads = [
        threading.Thread(target=_agent, args=(Home(options.home), numbers, options)) for _ in range(options.at_once)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _agent(home: Home, numbers: "count[int]", options: argparse.Namespace) -> None:
    state = read_state(home)
    assert state is not None
    connection = HTTPConnection("127.0.0.1", state.port, timeout=120)
    headers = {
        "content-type": "application/json", "x-reef-token": home.agent_token.read_text(),
        "authorization": "Bearer sk-provider",
    }  # fmt: skip
    said: list[dict[str, str]] = []
    while (number := next(numbers)) <= options.records:
        if len(said) >= 2 * _TURNS:
            said = []
        said.append({"role": "user", "content": f"task {number}: why does test {number} fail?"})
        asked = {"model": "bench", "stream": True, "max_tokens": options.chunks, "seed": options.pace, "messages": said}
        connection.request("POST", "/v1/chat/completions", json.dumps(asked), headers)
        answer = b"".join(connection.getresponse()).decode()
        events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
        text = "".join(one["choices"][0]["delta"].get("content") or "" for one in events if one["choices"])
        said.append({"role": "assistant", "content": text})


if __name__ == "__main__":
    main()
