"""Damaged requests and answers through a running daemon: they pass byte for byte, it goes on, the record is there."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import HealthCheck, given, settings

from daemon.core.paths import Home
from daemon.core.records import Dialect
from tests.daemon.wire.test_fuzz import damaged_answers, damaged_requests
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.serving import serving

PATHS = {
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.MESSAGES: "/v1/messages",
    Dialect.RESPONSES: "/v1/responses",
}
SOME = settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))


class Says:
    """A provider that answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.body, self.kind, self.asked, self.url = b"{}", "application/json", b"", ""


@pytest.fixture(scope="module")
def provider() -> Iterator[Says]:
    says = Says()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            says.asked = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", says.kind)
            self.send_header("content-length", str(len(says.body)))
            self.end_headers()
            self.wfile.write(says.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    says.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with serving(server):
        yield says


@pytest.fixture(scope="module")
def daemon(module_home: Home, provider: Says) -> Iterator[RunningDaemon]:
    config = f"""
server: {{port: 0}}
engine: all
engines:
  all: {{base_url: "{provider.url}", dialects: [chat, messages, responses]}}
  only-chat: {{base_url: "{provider.url}"}}
  only-messages: {{base_url: "{provider.url}", api: anthropic}}
  only-responses: {{base_url: "{provider.url}", dialects: responses}}
models: {{chat: only-chat, messages: only-messages, responses: only-responses}}
"""
    with running_daemon(module_home, config) as running:
        yield running


def kept(daemon: RunningDaemon, receipt: str) -> tuple[bytes, bytes]:
    sides = (f"/reef/records/{receipt}/{side}" for side in ("request", "response"))
    request, response = (daemon.control("GET", side)[1] for side in sides)
    return request, response


@SOME
@given(case=damaged_requests())
def test_a_damaged_request_passes_or_is_refused_and_is_kept(
    daemon: RunningDaemon, provider: Says, case: tuple[Dialect, bytes]
) -> None:
    name, raw = case
    provider.body, provider.kind, provider.asked = b'{"ok":true}', "application/json", b""
    status, headers, answered = daemon.post(PATHS[name], raw)
    assert status in (200, 400)
    assert provider.asked == (raw if status == 200 else b"")
    assert kept(daemon, headers["x-reef-agent-record-id"]) == (raw, answered)


@SOME
@given(case=damaged_answers())
def test_a_damaged_answer_passes_and_is_kept(
    daemon: RunningDaemon, provider: Says, case: tuple[Dialect, bytes, bool]
) -> None:
    name, provider.body, stream = case
    provider.kind = "text/event-stream" if stream else "application/json"
    _, headers, answered = daemon.post(PATHS[name], {"model": "m", "messages": [], "input": [], "stream": stream})
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    # A stream without its end gets one, which is an error of the dialect. Kept is what the provider sent.
    assert answered == provider.body or (row["end"] == "incomplete" and answered)
    assert kept(daemon, row["receipt"])[1] == provider.body


@SOME
@given(case=damaged_answers())
def test_a_damaged_answer_is_translated_or_told_as_an_error(
    daemon: RunningDaemon, provider: Says, case: tuple[Dialect, bytes, bool]
) -> None:
    name, provider.body, stream = case
    provider.kind = "text/event-stream" if stream else "application/json"
    said = [{"role": "user", "content": "x"}]
    asked = Dialect.CHAT if name is not Dialect.CHAT else Dialect.RESPONSES
    status, headers, answered = daemon.post(
        PATHS[asked], {"model": str(name), "messages": said, "input": said, "stream": stream}
    )
    assert status in (200, 502)
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert "internal error" not in str(row["error"])
    assert (row["end"] == "ok") is (status == 200 and not (b'"error":{' in answered or b"response.failed" in answered))
