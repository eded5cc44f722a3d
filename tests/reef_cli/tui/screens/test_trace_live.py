"""A trace of the real daemon: an answer that streams in, what changed, the bodies; and a session of ten thousands."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.screens.exchange import Changes, Raw
from reef_cli.tui.screens.trace import Trace
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Fault, Provider, Turn, bash, running_provider
from tests.reef_cli.tui.seen import Seen, dashboard

CHAT = "/v1/chat/completions"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider((Turn("The first answer.", (bash("ls -la"),), "Let me think."),)) as running:
        yield running


@pytest.fixture
def daemon(reef_home: Home, provider: Provider) -> Iterator[RunningDaemon]:
    with running_daemon(reef_home, provider.config(dialects=["chat"])) as running:
        yield running


def ask(daemon: RunningDaemon, *messages: dict[str, object]) -> None:
    body = {"model": "m", "stream": True, "messages": list(messages)}
    daemon.open(CHAT, body, headers={"x-session-id": "read"}).read()


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


async def opened(seen: Seen, text: str) -> None:
    await seen.until(lambda: seen.panel.list.window.rows)
    await seen.press("enter")
    await seen.shows(text)


async def test_the_answer_streams_in(daemon: RunningDaemon, provider: Provider, reef_home: Home) -> None:
    ask(daemon, user("what is asked"))
    go_on = threading.Event()
    provider.turns = (Turn("A second answer in many words that come one by one."),)
    provider.faults.append(Fault(held=go_on, held_at=6))
    said = (user("what is asked"), {"role": "assistant", "content": "The first answer."}, user("and then?"))
    async with dashboard(reef_home, (100, 40)) as seen:
        await opened(seen, "tool bash $ ls -la")
        asking = threading.Thread(target=ask, args=(daemon, *said))
        asking.start()
        try:
            await seen.shows("answering now", "A second answer")
            assert "one by one." not in seen.screen
        finally:
            go_on.set()
            asking.join(60)
        await seen.shows("one by one.")
        await seen.until(lambda: "answering now" not in seen.screen)
        assert seen.screen.count("A second answer") == 1


async def test_what_changed_and_the_bodies(daemon: RunningDaemon, reef_home: Home) -> None:
    ask(daemon, user("what is asked"))
    ask(daemon, user("what was asked"), {"role": "assistant", "content": "The first answer."}, user("and then?"))
    async with dashboard(reef_home, (100, 40)) as seen:
        await opened(seen, "and then?")
        await seen.press("d")
        await seen.until(lambda: isinstance(seen.app.screen, Changes))
        await seen.shows("the beginning is broken: message 1 (user) is another", "- what is asked", "+ what was asked")
        await seen.press("escape", "R")
        await seen.until(lambda: isinstance(seen.app.screen, Raw))
        await seen.shows('"content": "and then?"')
        await seen.press("tab")
        await seen.shows('data: {"object": "chat.completion.chunk"')
        await seen.press("G")
        await seen.shows("data: [DONE]")


async def test_a_session_of_forty_megabytes_paints_at_once(daemon: RunningDaemon, reef_home: Home) -> None:
    """BUGS B227: 5,000 records of three events each, from an agent that sends only what is new. What is read of them is
    what is shown and what is next to it, and is read anew whenever the session is opened.
    """
    for start in range(0, 5000, 250):
        envelopes = [_envelope(n) for n in range(start, start + 250)]
        status, told = daemon.control("POST", "/reef/records/batch", {"records": envelopes})
        assert status == 200, told
    (session,) = daemon.get("/reef/sessions")["items"]
    assert session["records"] == 5000
    read: list[int] = []
    async with dashboard(reef_home, (120, 36), connect=lambda seconds: Counted(reef_home, seconds, read)) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        times = [1.0]
        while min(times) >= 0.3 and len(times) < 30:  # the best one: other tests run meanwhile
            read.clear()
            began = time.monotonic()
            seen.app.push_screen(Trace(seen.app.desk, session["id"]))
            await seen.shows("make 4999")
            times.append(time.monotonic() - began)
            await seen.settle()
            assert 0 < read[0] <= 50
            assert sum(read) <= 200
            await seen.press("escape")
            await seen.until(lambda: not isinstance(seen.app.screen, Trace))
        assert min(times) < 0.3


class Counted(Client):
    """Tells how many records came in each page of a session."""

    def __init__(self, home: Home, seconds: float, read: list[int]) -> None:
        super().__init__(home.socket, timeout=seconds)
        self._read = read

    def get(self, path: str, /, **query: object) -> Any:
        found = super().get(path, **query)
        if path.startswith("/reef/traces/"):
            self._read.append(len(found["records"]))
        return found


def _envelope(n: int) -> dict[str, object]:
    call = {"type": "function_call", "call_id": f"c{n}", "name": "bash", "arguments": json.dumps({"cmd": f"make {n}"})}
    result = {"type": "function_call_output", "call_id": f"c{n - 1}", "output": f"{n} " + "x" * 8000}
    payload = {
        "model": "m", "input": [result] if n else [user("build it")],
        "response": {
            "id": f"resp_{n}", "object": "response", "status": "completed", "model": "m",
            "output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": f"thought {n}"}]}, call],
        },
    }  # fmt: skip
    if n:
        payload["previous_response_id"] = f"resp_{n - 1}"
    return {"agent_record_id": f"rec-{n}", "request_type": "inference", "payload": payload}
