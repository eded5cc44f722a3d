"""`reef traces live`."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from daemon.core.errors import ExitCode
from tests.fakes.daemon import REPOSITORY
from tests.fakes.provider import Fault, Turn, bash, until
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


@contextmanager
def asking(served: Served, turn: Turn) -> Iterator[tuple[str, threading.Event]]:
    """A call that is being answered until the event is set, and its receipt."""
    held = threading.Event()
    served.provider.turns = (turn,)
    served.provider.faults.append(Fault(held=held, held_at=4))
    tool = {"type": "function", "function": {"name": "bash", "parameters": {}}}
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go on"}], "tools": [tool]}
    thread = threading.Thread(target=lambda: served.daemon.post("/v1/chat/completions", body))
    thread.start()
    try:
        until(lambda: bool(served.daemon.get("/reef/live")["items"]), "the call is being answered")
        yield served.daemon.get("/reef/live")["items"][0]["receipt"], held
    finally:
        held.set()
        thread.join(30)


def followed(served: Served, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", "traces", "live", *words], cwd=REPOSITORY, text=True,
        env={**os.environ, "REEF_HOME": str(served.home.root)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_what_is_being_answered_is_listed(served: Served, cli: Reef) -> None:
    assert "nothing is being answered now" in cli("traces", "live").err
    with asking(served, Turn("some more words than it is held at")) as (receipt, _):
        assert receipt in cli("traces", "live").out
        assert cli("traces", "live", "--json").json()["items"][0]["receipt"] == receipt
    assert cli("traces", "live", "--json").json() == {"items": []}


def test_an_answer_is_shown_as_it_comes_and_inert(served: Served) -> None:
    turn = Turn("It has an \x1b[31mescape in it.", (bash("ls"),), "Let me think.")
    with asking(served, turn) as (receipt, held), followed(served, receipt[:-1]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "[thinking]\n", "before it is whole"
        held.set()
        out, err = process.stdout.read(), process.stderr.read()
    shown = ["Let me think.", "[text]", "It has an \\x1b[31mescape in it.", "[tool]", 'bash {"command": "ls"}']
    assert out.splitlines() == shown
    assert f"it ended: ok; all of it: reef traces show {receipt}" in err
    assert process.returncode == 0, "and it ends by itself"


def test_events_are_lines_of_json(served: Served) -> None:
    turn = Turn("Hello you who read this.")
    with asking(served, turn) as (receipt, held), followed(served, receipt, "--json") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        held.set()
        rest = process.stdout.read()
    events = [json.loads(line) for line in [first, *rest.splitlines()]]
    assert "".join(event["data"]["text"] for event in events if event["event"] == "text") == turn.text
    assert events[-1] == {"event": "end", "data": {"end": "ok"}}


def test_a_call_that_is_over_says_where_it_is(served: Served, cli: Reef) -> None:
    result = cli("traces", "live", "rec_gone", "--json")
    assert result.code == ExitCode.NOT_FOUND
    assert result.error()["hint"] == "reef traces show rec_gone"
