"""A client that leaves, or stops reading: on every route, before the first byte and after it."""

import json
import socket
import time
from typing import Any

import pytest

from tests.fakes.daemon import RunningDaemon, until
from tests.fakes.provider import Fault, Provider, Turn

ROUTES = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "count": "/v1/messages/count_tokens",
    "embeddings": "/v1/embeddings",
    "completions": "/v1/completions",
}
#: Answered by a provider of the same dialect, or of another (``chat`` by ``messages``, the others by ``chat``).
TALKS = [(route, model) for route in ("chat", "messages", "responses") for model in ("same", "other")]
KINDS = [*TALKS, *((route, "same") for route in ("count", "embeddings", "completions"))]
EVERY = pytest.mark.parametrize(("route", "model"), KINDS, ids=[f"{route}-{model}" for route, model in KINDS])


TURNS = (Turn("one two three four five six seven eight nine ten " * 20),)


CONFIG = """
server: {port: 0}
engine: all
engines:
  all: {base_url: "$URL/v1", dialects: [chat, messages, responses]}
  chat: {base_url: "$URL/v1", dialects: chat}
  messages: {base_url: "$URL/v1", dialects: messages, api: anthropic}
models: {same: all, other-chat: messages, "other-*": chat}
"""


def begin(daemon: RunningDaemon, route: str, model: str, *, stream: bool) -> socket.socket:
    """A request on its way, on a connection of its own."""
    said = {"input": "hi"} if route == "responses" else {"messages": [{"role": "user", "content": "hi"}]}
    limit = {"max_output_tokens" if route == "responses" else "max_tokens": 99}
    name = "same" if model == "same" else f"other-{route}"
    body = json.dumps({"model": name, **limit, "stream": stream, **said}).encode()
    head = {**daemon.headers(), "host": f"127.0.0.1:{daemon.port}", "content-length": str(len(body))}
    lines = "".join(f"{field}: {value}\r\n" for field, value in head.items())
    client = socket.create_connection(("127.0.0.1", daemon.port), timeout=120)
    client.sendall(f"POST {ROUTES[route]} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    return client


def receipts(daemon: RunningDaemon) -> set[str]:
    return {row["receipt"] for row in daemon.get("/reef/records?limit=500")["items"]}


def record(daemon: RunningDaemon, before: set[str]) -> dict[str, Any]:
    """The only new one."""

    def new() -> list[dict[str, Any]]:
        rows = daemon.get("/reef/records?limit=500")["items"]
        return [row for row in rows if row["receipt"] not in before]

    [row] = until(new, "the record of a client that left")
    return dict(row)


def leave(client: socket.socket, provider: Provider) -> float:
    """Seconds until the provider was left as well."""
    lost, left = provider.lost, time.monotonic()
    client.close()
    until(lambda: provider.lost > lost, "the provider is left")
    return time.monotonic() - left


@EVERY
@pytest.mark.parametrize("stream", [True, False])
def test_who_leaves_before_the_first_byte(
    daemon: RunningDaemon, provider: Provider, route: str, model: str, stream: bool
) -> None:
    """BUGS B042."""
    provider.faults.append(Fault(hang=True))
    before = receipts(daemon)
    client = begin(daemon, route, model, stream=stream)
    until(lambda: provider.requests, "the provider is asked")
    leave(client, provider)
    if route != "count":
        assert record(daemon, before)["end"] == "cancelled"


@pytest.mark.parametrize(("route", "model"), TALKS)
def test_who_leaves_in_the_middle(daemon: RunningDaemon, provider: Provider, route: str, model: str) -> None:
    """BUGS B041: What was said until then is kept."""
    provider.pace = 0.02
    before = receipts(daemon)
    client = begin(daemon, route, model, stream=True)
    seen = b""
    while b"four" not in seen:
        seen += client.recv(65536)
    leave(client, provider)
    row = record(daemon, before)
    assert (row["end"], row["preview"].startswith("one two three")) == ("cancelled", True)


def test_the_provider_is_left_within_a_second(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B039: The best of three: a busy machine is late now and then."""
    seconds = []
    for number in range(3):
        provider.faults.append(Fault(hang=True))
        client = begin(daemon, "chat", "same", stream=True)
        until(lambda number=number: len(provider.requests) > number, "the provider is asked")
        seconds.append(leave(client, provider))
    assert min(seconds) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("model", ["same", "other"])
def test_a_client_that_does_not_read_holds_the_provider_back(
    daemon: RunningDaemon, provider: Provider, model: str
) -> None:
    """What is on its way is a few buffers, not the whole answer in memory; once it is read, all of it comes."""
    provider.turns = (Turn(" ".join(["x" * 100_000] * 400)),)  # 40 MB
    provider.sent = 0
    client = begin(daemon, "chat", model, stream=True)
    with client:
        until(lambda: provider.sent, "the answer begins")
        assert _settled(provider) < 25_000_000
        seen = tail = b""
        total = 0
        while b"[DONE]" not in tail + seen:
            tail, seen = seen[-10:], client.recv(1 << 20)
            assert seen, "it ended before its end"
            total += len(seen)
    assert total > 40_000_000


def _settled(provider: Provider) -> int:
    """Bytes sent, once nothing more goes."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 0.5:
        if provider.sent != last:
            last, since = provider.sent, time.monotonic()
        time.sleep(0.02)
    return last
