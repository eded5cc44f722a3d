"""Captured exchanges of real agents again, through the whole daemon: the same bytes both ways, the right place.

An extra, like `tests.extra.test_cases`: it runs where the captures are, and says so where they are not.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.daemon.wire.resent import wire_bytes
from tests.extra.test_cases import AGENTS, CAPTURES
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.serving import serving

pytestmark = pytest.mark.skipif(not AGENTS, reason=f"no captures at {CAPTURES}")

#: Kinds in order; ``|`` begins another session. Long texts are filler in the captures, so what only words tell is
#: not told here: aider's commit message, Qwen Code's notes, its new beginnings (tests/e2e has them).
KINDS = {
    "aider": "main | main",
    "claude-code": 6 * "main ",
    "claude-code-fail-mid": "main retry",
    "claude-code-subagent": "main subagent main " + 5 * "subagent " + "main",
    "codex": 6 * "main ",
    "codex-fail-429x2": "main retry retry",
    "codex-fail-mid": "main main",
    "hermes-agent": "main main main side",
    "mistral-vibe": 3 * "main ",
    "opencode": "side " + 6 * "main ",
    "opencode-responses": "side " + 3 * "main ",
    "pi": 6 * "main ",
    "pi-0.74.2-node20": 6 * "main " + "| " + 3 * "main ",
    "pi-anthropic": 3 * "main ",
    "pi-cancel": "main",
    "pi-fail-drop": "main retry",
    "pi-fail-mid": "main retry",
    "pi-responses": 3 * "main ",
    "qwen-code": "main main main | main main main",
    "qwen-code-fail-mid": "main main | main",
}
#: A command of Reef's, typed into OpenCode. Reef answers it itself, so what follows in the capture comes no more.
TO_REEF = "opencode-command"
REPLAYED = [agent for agent in AGENTS if agent != TO_REEF]
#: What belongs to one connection, or is Reef's own.
HOP = {"host", "connection", "content-length", "transfer-encoding", "authorization", "x-api-key"}


@dataclass(frozen=True)
class Capture:
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    status: int | None
    answer_headers: dict[str, str]
    answer: bytes
    dropped: str | bool | None
    left: bool

    @property
    def ok(self) -> bool:
        return self.status == 200 and not self.dropped and not self.left


def captures(agent: str) -> list[Capture]:
    """The inference requests; what else an agent asked for is answered by Reef itself."""
    found = []
    for file in sorted((CAPTURES / agent).glob("*.json")):
        told: dict[str, Any] = json.loads(file.read_text("utf-8"))
        response = told["response"]
        if told["method"] == "POST" and told["path"].startswith("/v1/"):
            found.append(
                Capture(
                    told["path"], [tuple(pair) for pair in told["headers"]], wire_bytes(told["body"]),
                    response["status"], response["headers"], (response.get("body") or "").encode(),
                    response.get("dropped"), "client_disconnect" in response,
                )
            )  # fmt: skip
    return found


class Again:
    """A provider that gives the captured answer to whatever comes; ``now`` says which."""

    def __init__(self) -> None:
        self.now: Capture
        self.received: list[tuple[str, list[tuple[str, str]], bytes]] = []
        self.left = Event()
        again = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                again.received.append((self.path, list(self.headers.items()), body))
                again.answer(self)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        now = self.now
        handler.close_connection = bool(now.dropped)
        if now.status is None:
            return
        handler.send_response_only(now.status)
        for name, value in now.answer_headers.items():
            handler.send_header(name, value if name.lower() != "content-length" else str(len(now.answer)))
        handler.end_headers()
        chunked = "Transfer-Encoding" in now.answer_headers
        for event in now.answer.splitlines(keepends=True) if chunked else [now.answer]:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event) if chunked else event)
        if now.left:
            self.left.wait(30)
        elif chunked and not now.dropped:
            handler.wfile.write(b"0\r\n\r\n")


@pytest.fixture(scope="module")
def provider() -> Iterator[Again]:
    again = Again()
    with serving(again.server):
        yield again
        again.left.set()


@pytest.fixture(scope="module")
def daemon(provider: Again, module_home: Home) -> Iterator[RunningDaemon]:
    """Every capture in a scenario of its own."""
    config = f"""
server: {{port: 0}}
engine: p
engines:
  p:
    base_url: http://127.0.0.1:{provider.server.server_port}/v1
    key: env:REPLAY_KEY
    dialects: [chat, messages, responses]
"""
    with running_daemon(module_home, config, environment={"REPLAY_KEY": "k"}) as running:
        yield running


def send(daemon: RunningDaemon, capture: Capture, scenario: str) -> tuple[HTTPConnection, HTTPResponse]:
    connection = daemon.connect()
    connection.putrequest("POST", capture.path, skip_accept_encoding=True)
    for name, value in capture.headers:
        if name.lower() not in HOP:
            connection.putheader(name, value)
    connection.putheader("Authorization", f"Bearer {daemon.agent_token}")
    connection.putheader("x-reef-scenario", scenario)
    connection.putheader("Content-Length", str(len(capture.body)))
    connection.endheaders(capture.body)
    return connection, connection.getresponse()


def replayed(daemon: RunningDaemon, provider: Again, capture: Capture, scenario: str) -> str:
    """One exchange, its bytes compared on the way; the receipt."""
    provider.now = capture
    provider.received.clear()
    connection, response = send(daemon, capture, scenario)
    receipt = response.headers["x-reef-agent-record-id"]
    if capture.left:
        connection.close()
        response.close()
        until(lambda: daemon.control("GET", f"/reef/records/{receipt}")[0] == 200, "its record")
    got = b""
    with suppress(HTTPException, ConnectionError):
        while data := response.read1():
            got += data
    assert provider.received
    for path, headers, body in provider.received:
        assert (path, body) == (capture.path, capture.body)
        lower = {name.lower(): value for name, value in headers}
        ours = {name.lower() for name, _ in capture.headers if name.lower().startswith("x-reef-")}
        for name, value in capture.headers:
            if name.lower() not in HOP | ours:
                assert lower[name.lower()] == value.replace("br, ", "")  # which Reef could not read
    if capture.status is not None:
        assert response.status == capture.status
        assert got == capture.answer if capture.ok or capture.status != 200 else got.startswith(capture.answer)
        for name, value in capture.answer_headers.items():
            if name.lower() not in HOP and not name.lower().startswith("x-reef-"):
                assert response.headers[name] == value
    return receipt


def test_what_is_said_to_reef_is_answered_by_it(daemon: RunningDaemon, provider: Again) -> None:
    title, said, *_ = captures(TO_REEF)
    replayed(daemon, provider, title, TO_REEF)
    provider.received.clear()
    _, response = send(daemon, said, TO_REEF)
    assert (response.status, response.headers["x-reef-recording"]) == (200, "feedback")
    assert b'"Reef: ' in response.read()
    assert provider.received == []


@pytest.mark.parametrize("agent", REPLAYED or ["none"])
def test_captures_pass_unchanged_and_land_where_they_belong(agent: str, daemon: RunningDaemon, provider: Again) -> None:
    taken = captures(agent)
    receipts = [replayed(daemon, provider, capture, agent) for capture in taken]
    records = [daemon.get(f"/reef/records/{receipt}") for receipt in receipts]
    for capture, receipt in zip(taken, receipts, strict=True):
        assert daemon.control("GET", f"/reef/records/{receipt}/request")[1] == capture.body
        if capture.ok:
            assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == capture.answer
    sessions = list(dict.fromkeys(record["session"] for record in records))
    kinds = [" ".join(record["kind"] for record in records if record["session"] == session) for session in sessions]
    assert kinds == [" ".join(part.split()) for part in KINDS[agent].split("|")]
    assert [record["end"] == "ok" for record in records] == [capture.ok for capture in taken]
    turns = sum(daemon.get(f"/reef/traces/{session}")["session"]["turns"] for session in sessions)
    assert turns == sum(
        capture.ok and record["kind"] in ("main", "retry") for capture, record in zip(taken, records, strict=True)
    )
