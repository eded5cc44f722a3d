"""What a web page, a wrong program or a curious agent may try, on every route that there is."""

import json
import re
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.routing import Route

from daemon.core.paths import Home
from daemon.server.app import _routes
from daemon.server.auth import _AGENT_ROUTES
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Provider, Turn, running_provider
from tests.fakes.sockets import elsewhere

CHAT = "/v1/chat/completions"
DROP = "'; DROP TABLE record; --"
ROUTES = sorted(
    (method, re.sub(r"\{[^}]*\}", "x", route.path))
    for route in _routes
    if isinstance(route, Route)
    for method in (route.methods or ())
    if method != "HEAD"
)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider((Turn("Fine."),)) as running:
        yield running


@pytest.fixture(scope="module")
def daemon(module_home: Home, provider: Provider) -> Iterator[RunningDaemon]:
    with running_daemon(module_home, provider.config()) as running:
        yield running


def status(daemon: RunningDaemon, method: str, path: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = daemon.open(path, b"", method=method, headers=named)
    assert response.getheader("access-control-allow-origin") is None
    response.read()
    return response.status


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("POST", CHAT), ("POST", "/v1/messages"), ("OPTIONS", CHAT)])
def test_no_web_page_reaches_any_route(daemon: RunningDaemon, method: str, path: str) -> None:
    """DNS rebinding, another origin, a cross-site form: with the best of tokens."""
    best = f"Bearer {daemon.control_token}"
    assert status(daemon, method, path, authorization=best, host="evil.example") == 403
    assert status(daemon, method, path, authorization=best, origin="http://evil.example") == 403
    assert status(daemon, method, path, authorization=best, sec_fetch_site="cross-site") == 403


@pytest.mark.parametrize("path", ["/healthz", "/", "/v1/responses", "/reef/events", "/reef/status", "/static/x", "/ws"])
def test_no_web_page_opens_a_websocket(daemon: RunningDaemon, path: str) -> None:
    """No same-origin rule holds for those: only the Host and the Origin tell (GHSA-vx97-q3mm-h3r9)."""
    upgrade = {
        "connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13",
        "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==", "authorization": f"Bearer {daemon.control_token}",
    }  # fmt: skip
    assert status(daemon, "GET", path, **upgrade, host="evil.example") == 403
    assert status(daemon, "GET", path, **upgrade, origin="http://evil.example") == 403
    if path != "/reef/events":
        assert status(daemon, "GET", path, **upgrade) != 101


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_but_one_wants_a_token_and_most_the_persons(daemon: RunningDaemon, method: str, path: str) -> None:
    if path == "/healthz":
        return
    assert status(daemon, method, path, authorization="") == 401
    if not path.startswith("/v1/") and (method, path) not in _AGENT_ROUTES:
        assert status(daemon, method, path) == 401, "an agent's token is for inference"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../reef/status", "/v1/%2e%2e/reef/status", "/v1/..%2freef/status", "/v1//reef/status", "//reef/status",
        "/v1/x/../../../reef/status", "/V1/../reef/status", "/reef/status/", "/reef/./status", "/t/x/../reef/status",
        "/v1/%2e%2e%5creef/status", "/reef/harness/../status",
    ],
)  # fmt: skip
def test_no_spelling_of_a_path_gets_an_agent_to_the_control_plane_or_above_a_provider(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    before = len(provider.requests)
    response = daemon.open(path, b"", method="GET")
    assert response.status in (400, 401, 404, 405)
    assert b"uptime" not in response.read()
    asked = [one.path for one in provider.requests[before:]]
    assert [one for one in asked if ".." in one or not one.startswith("/v1/")] == []


def test_quotes_in_every_name_are_only_names(daemon: RunningDaemon) -> None:
    """BUGS B179: Names of models and sessions, ids, cursors and searches never become SQL."""
    before = daemon.get("/reef/status")["counts"]["records"]
    body = {"model": DROP, "user": DROP, "messages": [{"role": "user", "content": DROP}]}
    said = {
        "x_reef_session_id": DROP, "x_reef_cwd": quote(f"/{DROP}"), "x_reef_commit": DROP, "x_reef_adapter": DROP,
        "x_reef_tag_a": DROP, "x_claude_code_agent_id": DROP, "user_agent": DROP, "traceparent": DROP,
    }  # fmt: skip
    answered, told, _ = daemon.post(CHAT, body, **said)
    assert answered == 200
    receipt = told["x-reef-agent-record-id"]
    assert daemon.get(f"/reef/records/{receipt}")["model_asked"] == DROP
    assert daemon.get("/reef/status")["counts"]["records"] == before + 1
    odd = quote(DROP, safe="")
    for path in (f"/reef/records/{odd}", f"/reef/traces/{odd}", f"/reef/jobs/{odd}", f"/reef/releases/{odd}"):
        assert daemon.control("GET", path)[0] == 404, path
    for path in (f"records?before={odd}", f"sessions?after={odd}", f"records?limit={odd}", f"audit?before={odd}"):
        assert daemon.control("GET", f"/reef/{path}")[0] == 400, path
    assert daemon.control("GET", f"/reef/search?q={odd}")[0] in (200, 400)
    assert daemon.control("GET", f"/reef/sessions?scenario={odd}")[0] in (200, 400)
    assert daemon.post(CHAT, body, x_reef_scenario=DROP)[0] == 400
    assert daemon.control("POST", "/reef/purge", {"sessions": [DROP]})[0] == 404
    with sqlite3.connect(f"{daemon.home.database.as_uri()}?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM record").fetchone()[0] == before + 1
    db.close()


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"messages":' + b"[" * 100_000])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses", "/reef/report", "/reef/train"])
def test_nesting_without_end_is_an_error_and_no_crash(daemon: RunningDaemon, body: bytes, path: str) -> None:
    response = daemon.open(path, body)
    assert response.status == 400
    assert "error" in json.loads(response.read())


def test_a_control_body_is_bounded_before_it_is_read(daemon: RunningDaemon) -> None:
    for path in ("/reef/report", "/reef/train"):
        assert daemon.open(path, b'"' + b"x" * (5 << 20) + b'"').status == 413


def test_what_a_header_carries_cannot_become_another_header(daemon: RunningDaemon, provider: Provider) -> None:
    for value in (b"a\r\nx-injected: 1", b"a\nx-injected: 1", b"a\rx-injected: 1", b"a\0b"):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
            body = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
            raw.sendall(
                b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\n"
                b"x-reef-scenario: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
                % (CHAT.encode(), daemon.agent_token.encode(), value, len(body), body)
            )
            received = b""
            while chunk := raw.recv(65536):
                received += chunk
        assert b"\r\nx-injected" not in received.partition(b"\r\n\r\n")[0].lower()
    encoded = {"x_reef_cwd": "/a%0d%0ax-injected:%201%00", "x_reef_commit": "a%0d%0ab"}
    answered, headers, _ = daemon.post(CHAT, {"model": "m", "messages": [{"role": "user", "content": "y"}]}, **encoded)
    assert (answered, "x-injected" in headers) == (200, False)


def test_only_loopback_is_listened_on_and_no_other_program_is_called(daemon: RunningDaemon) -> None:
    assert elsewhere(daemon.process.pid) == []


def test_a_link_where_a_private_file_should_be_is_replaced_not_followed(reef_home: Home, tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.write_text("mine")
    reef_home.paused.symlink_to(aim)
    with running_daemon(reef_home) as daemon:
        daemon.control("POST", "/reef/pause", {})
        assert not reef_home.paused.is_symlink()
    assert aim.read_text() == "mine"
