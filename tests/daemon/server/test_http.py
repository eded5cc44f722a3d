"""HTTP to the letter: what clients may send besides a plain POST, and what they get."""

import gzip
import json
import socket
import subprocess
import time
import zlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import zstandard

from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Fault, Provider, Turn

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


TURNS = (Turn("An answer."),)
CONFIG = """
server: {port: 0}
engine: openai
engines:
  openai: {base_url: "$URL/v1"}
  anthropic: {base_url: "$URL/v1", api: anthropic}
  responses: {base_url: "$URL/v1", dialects: responses}
"""


def ask(text: str, **fields: Any) -> bytes:
    return json.dumps(
        {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}], **fields}
    ).encode()


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("encoding", list(ENCODERS))
def test_a_compressed_body_goes_up_as_it_came(
    daemon: RunningDaemon, provider: Provider, path: str, encoding: str
) -> None:
    raw = ENCODERS[encoding](ask("compressed"))
    assert daemon.post(path, raw, content_encoding=encoding)[0] == 200
    sent = provider.requests[-1]
    assert (sent.body, sent.header("content-encoding")) == (raw, encoding)


@pytest.mark.parametrize("path", [CHAT, f"{MESSAGES}/count_tokens"])
def test_a_compressed_body_is_as_long_as_what_comes_out_of_it(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    raw = zstandard.compress(ask("x" * (65 << 20)))
    connection = daemon.connect()
    connection.request("POST", path, raw, daemon.headers() | {"content-encoding": "zstd"})
    response = connection.getresponse()
    assert (response.status, provider.requests) == (413, [])
    assert "max_body_mb" in json.loads(response.read())["error"]["message"]


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_an_answer_that_came_compressed_is_decoded_by_clients(
    daemon: RunningDaemon, provider: Provider, path: str, stream: bool, accepted: str
) -> None:
    """BUGS B046, B047, B051: Whether they asked for it or not: what the head says of the body is true of it."""
    provider.gzip = True
    headers = {**daemon.headers(), "accept-encoding": accepted}
    told = httpx.post(f"{daemon.url}{path}", content=ask("x", stream=stream, input="x"), headers=headers)
    assert (told.status_code, told.headers["content-encoding"]) == (200, "gzip")
    assert b" answer." in told.content
    receipt = told.headers["x-reef-agent-record-id"]
    assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == told.content


def test_curl_decodes_what_came_compressed(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B046."""
    provider.gzip = True
    words = [word for name, value in daemon.headers().items() for word in ("-H", f"{name}: {value}")]
    command = ["curl", "-sS", "--noproxy", "*", "--compressed", *words, "--data-binary", "@-", f"{daemon.url}{CHAT}"]
    said = subprocess.run(command, input=ask("x"), capture_output=True, timeout=30, check=True).stdout
    assert json.loads(said)["choices"][0]["message"]["content"] == "An answer."


def test_64_mib_in_chunks_pass(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B066."""
    provider.echo = True
    raw = ask("x" * ((64 << 20) - 500))
    pieces = (raw[at : at + (1 << 20)] for at in range(0, len(raw), 1 << 20))
    connection = daemon.connect()
    connection.request("POST", CHAT, pieces, daemon.headers(), encode_chunked=True)
    response = connection.getresponse()
    response.read()
    assert response.status == 200
    assert provider.requests[-1].body == raw


def test_a_client_that_waits_for_100_continue_gets_it_at_once(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B052."""
    body = ask("x" * (2 << 20))
    head = "".join(f"{name}: {value}\r\n" for name, value in daemon.headers().items())
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
        raw.sendall(
            f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{daemon.port}\r\n{head}"
            f"expect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        )
        assert raw.recv(1024).startswith(b"HTTP/1.1 100 Continue")  # before a byte of the body was sent
        raw.sendall(body)
        assert raw.recv(1024).startswith(b"HTTP/1.1 200")
    assert provider.requests[-1].body == body
    assert provider.requests[-1].header("expect") is None


@pytest.mark.parametrize("path", ["/", "/v1/models"])
def test_head_is_a_get_without_a_body(daemon: RunningDaemon, path: str) -> None:
    """BUGS B056."""
    connection = daemon.connect()
    connection.request("HEAD", path, headers=daemon.headers())
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    connection.request("GET", path, headers=daemon.headers())  # the connection is not out of step
    assert connection.getresponse().read() != b""


@pytest.mark.parametrize(("method", "path"), [("OPTIONS", "*"), ("OPTIONS", CHAT), ("HEAD", CHAT), ("GET", CHAT)])
def test_what_a_route_does_not_know_is_refused_quickly(daemon: RunningDaemon, method: str, path: str) -> None:
    connection = daemon.connect()
    started = time.monotonic()
    connection.request(method, path, headers=daemon.headers())
    response = connection.getresponse()
    response.read()
    assert response.status in (401, 404, 405)
    assert time.monotonic() - started < 5


def test_a_length_and_chunks_at_once_are_no_request(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B057: Two readers that disagree about where it ends are how requests are smuggled."""
    head = "".join(f"{name}: {value}\r\n" for name, value in daemon.headers().items())
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
        raw.sendall(
            f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{daemon.port}\r\n{head}"
            "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".encode()
        )
        assert raw.recv(1024).startswith(b"HTTP/1.1 400")
    assert not provider.requests


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, f"{MESSAGES}/count_tokens", "/v1/embeddings"])
def test_every_header_of_a_refusal_comes_back(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    """BUGS B061: Claude Code waits for what these say, and retries for ever without them."""
    told = {
        "retry-after": "17",
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "1790000000",
        "x-should-retry": "false",
        "request-id": "req_1",
        "x-ratelimit-remaining-tokens": "0",
        "set-cookie": "a=b; Path=/",
    }
    provider.faults.append(Fault(status=429, headers=told))
    status, headers, _ = daemon.post(path, ask("x"))
    assert status == 429
    assert {name: headers[name] for name in told} == told


def test_many_requests_go_over_one_connection(daemon: RunningDaemon, provider: Provider) -> None:
    connection = daemon.connect()
    for stream in (True, False, True):
        connection.request("POST", MESSAGES, ask("x", stream=stream), daemon.headers())
        response = connection.getresponse()
        response.read()
        assert response.status == 200
