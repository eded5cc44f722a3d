"""The door: what is refused, and that it is refused before the body is read."""

import json
import socket

import pytest

from daemon.core.errors import ConfigError
from daemon.core.paths import Home
from daemon.server.auth import Tokens
from tests.fakes.daemon import RunningDaemon

CONFIG = "server: {port: 0}"


def head(daemon: RunningDaemon, lines: list[str], *, path: str = "/v1/chat/completions", method: str = "POST") -> str:
    """Send only the head of a request whose body never comes; return what comes back."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
        text = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "content-length: 5000000", "", ""])
        raw.sendall(text.encode())
        received = b""
        while chunk := raw.recv(65536):
            received += chunk
    return received.decode()


def good(daemon: RunningDaemon, **changed: str | None) -> list[str]:
    headers: dict[str, str | None] = {
        "host": f"127.0.0.1:{daemon.port}",
        "content-type": "application/json",
        "authorization": f"Bearer {daemon.agent_token}",
    }
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    return [f"{name}: {value}" for name, value in headers.items() if value is not None]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.com"}, 403),
        ({"host": "127.0.0.1:1"}, 403),
        ({"host": "localhost", "Host": "evil.example"}, 403),
        ({"host": None}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost", "Origin": "http://evil.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": None}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"authorization": None}, 401),
        ({"authorization": "Bearer reef-wrong"}, 401),
        ({"authorization": "Bearer ' OR 1=1--"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"x_reef_token": "wrong"}, 401),
    ],
)
def test_refused_from_the_head_alone(daemon: RunningDaemon, changed: dict[str, str | None], status: int) -> None:
    answered = head(daemon, good(daemon, **changed))
    assert answered.startswith(f"HTTP/1.1 {status} ")
    assert "access-control-" not in answered.lower()
    assert json.loads(answered.partition("\r\n\r\n")[2])["error"]["message"].startswith("Reef: ")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"error"}),
        ("/v1/responses", {"error"}),
        ("/v1/embeddings", {"error"}),
        ("/v1/messages", {"type", "error"}),
    ],
)
def test_a_refusal_has_the_shape_of_the_routes_vendor(daemon: RunningDaemon, path: str, fields: set[str]) -> None:
    status, _, raw = daemon.post(path, {"model": "m"}, authorization="Bearer reef-wrong")
    told = json.loads(raw)
    assert (status, set(told), told["error"]["type"]) == (401, fields, "authentication_error")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
@pytest.mark.parametrize("port", [True, False])
def test_every_name_of_this_machine_is_let_in(daemon: RunningDaemon, host: str, port: bool) -> None:
    """B176: https://github.com/modelcontextprotocol/conformance/issues/103."""
    value = f"{host}:{daemon.port}" if port else host
    response = daemon.open("/v1/models", b"", headers={"host": value}, method="GET")
    assert response.status == 200


def test_health_needs_no_token_but_the_right_host(daemon: RunningDaemon) -> None:
    """B174: https://github.com/mims-harvard/ToolUniverse/pull/556."""
    for host, status in ((f"127.0.0.1:{daemon.port}", 200), ("evil.example", 403)):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
            raw.sendall(f"GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            assert raw.recv(100).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "x-reef-token"])
def test_the_token_is_taken_from_any_of_the_usual_headers(daemon: RunningDaemon, name: str) -> None:
    value = f"Bearer {daemon.agent_token}" if name == "authorization" else daemon.agent_token
    response = daemon.open("/v1/models", b"", headers={"authorization": "Bearer other", name: value}, method="GET")
    assert response.status == 200


def test_the_token_may_stand_in_the_path(daemon: RunningDaemon) -> None:
    headers = {"authorization": "Bearer a-provider's-key"}
    good_path = daemon.open(f"/t/{daemon.agent_token}/v1/models", b"", headers=headers, method="GET")
    bad_path = daemon.open("/t/wrong/v1/models", b"", headers=headers, method="GET")
    assert (good_path.status, bad_path.status) == (200, 401)


@pytest.mark.parametrize("path", ["/reef/status", "/reef/sessions", "/reef/records", "/reef/config", "/reef/events"])
def test_an_agents_token_does_not_read_traces(daemon: RunningDaemon, path: str) -> None:
    assert daemon.open(path, b"", method="GET").status == 401


def test_the_control_token_opens_the_control_plane(daemon: RunningDaemon) -> None:
    headers = {"authorization": f"Bearer {daemon.control_token}"}
    assert daemon.open("/reef/status", b"", headers=headers, method="GET").status == 200


def test_the_socket_needs_no_token(daemon: RunningDaemon) -> None:
    assert daemon.control("GET", "/reef/status")[0] == 200


def test_tokens_are_long_private_and_kept(reef_home: Home) -> None:
    first, again = Tokens.load(reef_home), Tokens.load(reef_home)
    assert first == again
    assert first.agent != first.control
    assert len(first.agent) > 40
    assert reef_home.agent_token.stat().st_mode & 0o777 == 0o600
    assert (first.scope(first.agent), first.scope(first.control), first.scope("")) == ("agent", "control", None)


@pytest.mark.parametrize("text", [b"", b"\n"])
def test_an_empty_token_file_opens_no_door(reef_home: Home, text: bytes) -> None:
    reef_home.control_token.write_bytes(text)
    tokens = Tokens.load(reef_home)
    assert tokens.scope("") is None
    assert tokens.control == reef_home.control_token.read_text()


@pytest.mark.parametrize("text", [b"short", b"\xff" * 40, b"two words, no token of anybody's"])
def test_a_file_that_holds_no_token_is_named(reef_home: Home, text: bytes) -> None:
    reef_home.agent_token.write_bytes(text)
    with pytest.raises(ConfigError, match="tokens/agent"):
        Tokens.load(reef_home)


def test_no_token_reaches_a_log(daemon: RunningDaemon) -> None:
    daemon.open(f"/t/{daemon.agent_token}/v1/nothing", b"", method="GET").read()
    daemon.open("/v1/models", b"", headers={"x-reef-token": "reef-canary-wrong"}, method="GET").read()
    logs = "".join(path.read_text() for path in daemon.home.logs.iterdir())
    assert daemon.agent_token not in logs
    assert daemon.control_token not in logs
    assert "reef-canary-wrong" not in logs


def test_what_a_person_keeps_is_private(daemon: RunningDaemon) -> None:
    for path in daemon.home.root.rglob("*"):
        mode = path.lstat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path
