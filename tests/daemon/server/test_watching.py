"""Answers watched while they come, at a real daemon."""

import json
import threading
from collections.abc import Iterator
from typing import Any, Self

import pytest

from daemon.core.paths import Home
from tests.daemon.server.test_feed import Following
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Fault, Provider, Turn, bash, until

SECRET = "sk-proj-abcdefghij0123456789klmnop"
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


TURNS = (Turn("Hello from the provider.", (bash("ls"),), "Let me think."),)


@pytest.fixture(scope="module")
def daemon(module_home: Home, one_provider: Provider) -> Iterator[RunningDaemon]:
    with running_daemon(module_home, one_provider.config(dialects=["chat", "messages"])) as running:
        yield running


class Asking:
    """A streamed request, entered once its answer stands still behind so many events; it comes to its end at `go_on`,
    or when it is left."""

    def __init__(
        self, daemon: RunningDaemon, provider: Provider, path: str = PATHS[0], *, at: int = 1, named: bool = True,
        **more: object,
    ) -> None:  # fmt: skip
        self._daemon, self._path, self._held = daemon, path, threading.Event()
        self._session, self._more = {"x-reef-session-id": "watched"} if named else {}, more
        provider.faults.append(Fault(held=self._held, held_at=at))
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        until(lambda: bool(self._daemon.get("/reef/live")["items"]), "the call is in flight")
        (self.row,) = self._daemon.get("/reef/live")["items"]
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on()

    def _ask(self) -> None:
        said = [{"role": "user", "content": "hello"}]
        tool = {"name": "bash", "parameters": {}, "input_schema": {}}
        tools = [{"type": "function", **tool, "function": tool}]
        body = {"model": "m", "stream": True, "max_tokens": 9, "messages": said, "input": said, "tools": tools}
        headers = {"x-reef-scenario": "live", **self._session}
        self._daemon.open(self._path, body | self._more, headers=headers).read()

    def go_on(self) -> None:
        self._held.set()
        self._thread.join(30)


class Watching(Following):
    """One answer's events."""

    def __init__(self, daemon: RunningDaemon, receipt: str) -> None:
        super().__init__(daemon, of=f"/reef/live/{receipt}")

    def events(self) -> Iterator[tuple[str, Any]]:
        name = ""
        for line in self._lines:
            field, _, value = line.strip().partition(": ")
            name = value if field == "event" else name
            if field == "data":
                yield name, json.loads(value)


def told(watching: Watching) -> tuple[dict[str, str], dict[str, Any]]:
    """The texts by kind, and how it ended."""
    texts: dict[str, str] = {}
    for name, data in watching.events():
        if name == "end":
            return texts, data
        texts[data["kind"]] = texts.get(data["kind"], "") + data["text"]
    raise AssertionError("the stream ended without an end")


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_is_seen_from_its_beginning_while_it_comes(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    with Asking(daemon, provider, path, at=5) as asking, Watching(daemon, asking.row["receipt"]) as early:
        assert next(early.events())[0] == "text"
        with Watching(daemon, asking.row["receipt"]) as late:
            asking.go_on()
            texts, end = told(late)
    thought, words, called = "Let me think.", "Hello from the provider.", 'bash {"command": "ls"}'
    assert texts == {"thinking": thought, "text": words, "tool": called}
    assert end == {"end": "ok"}
    assert daemon.get(f"/reef/records/{asking.row['receipt']}")["end"] == "ok", "its record is on disk"
    assert daemon.get("/reef/live") == {"items": []}


def test_a_call_in_flight_is_told_and_listed(daemon: RunningDaemon, provider: Provider) -> None:
    with Following(daemon) as stream, Asking(daemon, provider, at=12) as asking:
        event = stream.until("live")[-1].data
        until(lambda: daemon.get("/reef/live")["items"][0]["chars"] > 0, "it has said something")
        asking.go_on()
        assert stream.until("record")[-1].data["receipt"] == event["receipt"]
    assert asking.row == {**event, "chars": asking.row["chars"]}
    assert (event["scenario"], event["model"]) == ("live", "m")


def test_a_call_in_flight_names_the_session_that_it_goes_on_in(daemon: RunningDaemon, provider: Provider) -> None:
    with Asking(daemon, provider) as first:
        first.go_on()
    with Asking(daemon, provider) as second:
        assert second.row["session"] == daemon.get(f"/reef/records/{first.row['receipt']}")["session"]


def test_a_session_is_known_by_the_ids_in_the_body_too(daemon: RunningDaemon, provider: Provider) -> None:
    key = "01890b6e-7d2f-7c3a-9d4e-5f6a7b8c9d0e"
    with Asking(daemon, provider, PATHS[2], named=False, prompt_cache_key=key) as first:
        assert first.row["session"] is None
    with Asking(daemon, provider, PATHS[2], named=False, prompt_cache_key=key) as second:
        assert second.row["session"] == daemon.get(f"/reef/records/{first.row['receipt']}")["session"]


def test_a_secret_is_not_shown_live_either(daemon: RunningDaemon, provider: Provider) -> None:
    turns, provider.turns = provider.turns, (Turn(f"the key is {SECRET} and so on"),)
    try:
        with Asking(daemon, provider) as asking, Watching(daemon, asking.row["receipt"]) as watching:
            asking.go_on()
            texts, _ = told(watching)
    finally:
        provider.turns = turns
    assert "[redacted:openai:" in texts["text"]
    assert SECRET[:12] not in str(texts)


def test_a_call_that_is_over_is_found_among_the_records(daemon: RunningDaemon) -> None:
    status, error = daemon.control("GET", "/reef/live/rec_gone")
    assert status == 404
    assert error["error"]["hint"] == "reef traces show rec_gone"


def test_an_agents_token_does_not_open_it(daemon: RunningDaemon) -> None:
    for path in ("/reef/live", "/reef/live/rec_1"):
        assert daemon.open(path, b"", method="GET").status == 401


def test_a_daemon_that_stops_ends_the_stream(reef_home: Home, provider: Provider) -> None:
    """Also of an answer that goes on: it is drained, who watches would only be in the way."""
    with (
        running_daemon(reef_home, provider.config(dialects=["chat"])) as daemon,
        Asking(daemon, provider) as asking,
        Watching(daemon, asking.row["receipt"]) as watching,
    ):
        assert daemon.control("POST", "/reef/shutdown", {})[0] == 200
        assert [name for name, _ in watching.events() if name != "text"] == []
