"""What is below /v1 and no conversation goes to the provider as it came; without one it is refused, and at once."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from starlette.types import Message

from daemon.core.paths import Home
from daemon.server.protocol import dated
from daemon.server.proxy import passes
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Fault, Provider, running_provider


@pytest.fixture(scope="module")
def one_provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture
def provider(one_provider: Provider) -> Provider:
    one_provider.requests.clear()
    return one_provider


@pytest.fixture(scope="module")
def daemon(module_home: Home, one_provider: Provider) -> Iterator[RunningDaemon]:
    config = one_provider.config(dialects=["chat", "messages", "responses"]) + 'models: {"local": embedded}\n'
    with running_daemon(module_home, config) as running:
        yield running


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions", "/v1/responses/compact", "/v1/made/up?x=1"])
def test_a_request_passes_byte_for_byte_and_is_recorded(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    raw = b'{ "model":"text-1",  "input": "x" }'
    status, headers, answered = daemon.post(path, raw)
    (sent,) = provider.requests
    assert (sent.method, f"{sent.path}?{sent.query}".rstrip("?"), sent.body) == ("POST", path, raw)
    assert (status, json.loads(answered)["error"]["type"]) == (404, "not_found_error")
    receipt = headers["x-reef-agent-record-id"]
    row = daemon.get(f"/reef/records/{receipt}")
    assert (row["dialect"], row["kind"], row["model_asked"], row["end"]) == ("other", "side", "text-1", "error")
    assert daemon.control("GET", f"/reef/records/{receipt}/request")[1] == raw


@pytest.mark.parametrize("method", ["DELETE", "GET", "POST"])
def test_an_answer_without_a_body_has_none_here_either(daemon: RunningDaemon, provider: Provider, method: str) -> None:
    """https://github.com/Kludex/uvicorn/issues/841: a byte of one, and the connection would be out of step."""
    provider.faults.append(Fault(status=204, headers={"x-told": "1"}))
    connection = daemon.connect()
    connection.request(method, "/v1/files/f", headers=daemon.headers())
    response = connection.getresponse()
    assert (response.status, response.headers["x-told"], response.read()) == (204, "1", b"")
    assert response.headers["content-length"] is None
    connection.request("GET", "/v1/models", headers=daemon.headers())
    assert connection.getresponse().status == 200


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/chat/completions", "/v1/models", "/v1/no/../such"])
def test_an_answer_has_one_date(daemon: RunningDaemon, path: str) -> None:
    """A provider's own where it brings one: uvicorn's beside it would be a second."""
    connection = daemon.connect()
    connection.request("GET" if path.endswith("models") else "POST", path, b'{"model": "m"}', daemon.headers())
    response = connection.getresponse()
    response.read()
    assert len(response.headers.get_all("date", [])) == 1


async def test_a_date_that_an_answer_brings_is_left() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    theirs = [(b"Date", b"Tue, 01 Jan 2030 00:00:00 GMT"), (b"x-told", b"1")]
    await dated(send)({"type": "http.response.start", "status": 200, "headers": theirs})
    await dated(send)({"type": "http.response.start", "status": 200, "headers": [(b"x-told", b"1")]})
    await dated(send)({"type": "http.response.body", "body": b"x"})
    assert sent[0]["headers"] == theirs
    assert [name for name, _ in sent[1]["headers"]] == [b"date", b"x-told"]
    assert sent[2]["body"] == b"x"


LOGIN = "sk-ant-oat01-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"


@pytest.mark.parametrize("in_path", [False, True])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"), ("POST", "/v1/messages?beta=true"), ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/responses"), ("POST", "/v1/embeddings"), ("POST", "/v1/made/up"), ("DELETE", "/v1/files/f"),
        ("GET", "/v1/responses/resp_1"),
    ],
)  # fmt: skip
def test_a_persons_login_goes_on_unchanged_and_is_kept_nowhere(
    daemon: RunningDaemon, provider: Provider, method: str, path: str, in_path: bool
) -> None:
    """BUGS B172: A subscription, not a key (MetaClaw#42); Reef's own token stands beside it and stays here."""
    own = {} if in_path else {"x-reef-token": daemon.agent_token}
    headers = {"content-type": "application/json", "authorization": f"Bearer {LOGIN}", "x-app": "cli"} | own
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "input": "x"}
    connection = daemon.connect()
    where = f"/t/{daemon.agent_token}{path}" if in_path else path
    connection.request(method, where, json.dumps(body) if method == "POST" else None, headers)
    connection.getresponse().read()
    sent = provider.requests[-1]
    assert f"{sent.path}?{sent.query}".rstrip("?") == path
    assert [value for name, value in sent.headers if name == "authorization"] == [f"Bearer {LOGIN}"]
    assert sent.header("x-app") == "cli"
    assert daemon.agent_token not in str(sent)
    for row in daemon.get("/reef/records?limit=3")["items"]:
        assert LOGIN not in str(daemon.control("GET", f"/reef/traces/{row['receipt']}"))
    for file in daemon.home.root.rglob("*"):
        assert not file.is_file() or LOGIN.encode() not in file.read_bytes()


def test_what_belongs_to_no_conversation_is_kept_together(daemon: RunningDaemon, provider: Provider) -> None:
    rows = [
        daemon.get(f"/reef/records/{daemon.post('/v1/rerank', {'n': n})[1]['x-reef-agent-record-id']}") for n in (1, 2)
    ]
    assert rows[0]["session"] == rows[1]["session"]
    assert daemon.get(f"/reef/traces/{rows[0]['session']}")["session"]["turns"] == 0


@pytest.mark.parametrize("path", ["/v1/a%20b", "/v1/%252e%252e/x"])
@pytest.mark.parametrize("in_path", [False, True])
def test_a_path_goes_up_as_it_is_escaped(daemon: RunningDaemon, provider: Provider, path: str, in_path: bool) -> None:
    """Undone, a blank would break the request's first line, and ``%252e`` lead out of the base URL."""
    daemon.open(f"/t/{daemon.agent_token}{path}" if in_path else path, b"", method="DELETE").read()
    (sent,) = provider.requests
    assert (sent.path, sent.query) == (unquote(path), "")


def test_what_only_reads_passes_and_leaves_no_record(daemon: RunningDaemon, provider: Provider) -> None:
    before = daemon.get("/reef/status")["counts"]["records"]
    response = daemon.open("/v1/responses/resp_1", b"", method="GET")
    assert (response.status, provider.requests[-1].method, provider.requests[-1].path) == (
        404,
        "GET",
        "/v1/responses/resp_1",
    )
    response.read()
    assert daemon.get("/reef/status")["counts"]["records"] == before


def test_the_engine_inside_says_what_it_has_and_what_to_do(daemon: RunningDaemon) -> None:
    status, _, raw = daemon.post("/v1/embeddings", {"model": "local", "input": "x"})
    error = json.loads(raw)["error"]
    assert (status, error["code"]) == (501, "not_supported")
    assert "models:" in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "goes"),
    [
        ("POST", "/v1/responses", True),
        ("GET", "/v1/responses", False),
        ("DELETE", "/v1/files/f", True),
        ("HEAD", "/v1/files/f", False),
        ("OPTIONS", "/v1/files/f", False),
        ("GET", "/", False),
        ("GET", "/v2/x", False),
        ("GET", "/v1/../admin", False),
        ("GET", "/v1/./x", False),
    ],
)
def test_what_goes_to_a_provider(method: str, path: str, goes: bool) -> None:
    assert passes(method, path) is goes


def test_a_websocket_is_refused_at_once(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B094: https://github.com/openai/codex/issues/22156: Codex falls back to HTTP once it is told."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as client:
        head = f"GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1:{daemon.port}\r\nauthorization: Bearer "
        head += f"{daemon.agent_token}\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
        client.sendall(f"{head}sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        assert client.recv(100).split()[1] in (b"404", b"405", b"426")
    assert provider.requests == []
