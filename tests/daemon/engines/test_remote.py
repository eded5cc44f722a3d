"""A provider behind the real client: bytes, headers, keys, faults."""

import asyncio
import json
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import EngineError, UpstreamUnreachable
from daemon.core.providers import RemoteConfig
from daemon.core.records import Dialect
from daemon.engines.base import EngineState, Headers, RelayEngine, RelayRequest, RelayResponse
from daemon.engines.remote import Remote
from tests.daemon.engines.conftest import engine
from tests.fakes.provider import Fault, Provider, until

ASK = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
ASK_WHOLE = ASK.replace(b"true", b"false")
JSON: Headers = [(b"content-type", b"application/json")]
KEY = "sk-canary-of-the-provider"


async def ask(remote: RelayEngine, body: bytes = ASK, path: str = "/chat/completions", headers: Headers = JSON) -> Any:
    """(response, body)"""
    response = await remote.relay(RelayRequest("POST", path, headers, body))
    try:
        return response, b"".join([chunk async for chunk in response.chunks()])
    finally:
        await response.close()


async def drain(response: RelayResponse, into: list[bytes]) -> None:
    async for chunk in response.chunks():
        into.append(chunk)


async def eventually(true: Callable[[], bool]) -> None:
    await asyncio.to_thread(until, true, "it is so")


# -- bytes and headers ------------------------------------------------------------------------------


async def test_bytes_go_up_and_come_down_unchanged(provider: Provider) -> None:
    provider.echo = True
    message = '{"role":"user","content":"阴 \\ud83d\\ude00"}'
    odd = ('{ "model":"m",\n "messages":[' + message + '], "x":1.10, "stream" : false}').encode()
    async with engine(provider.url) as remote:
        response, body = await ask(remote, odd)
    assert provider.requests[0].body == odd
    assert response.status == 200
    assert json.loads(body)["choices"][0]["message"]["role"] == "assistant"


async def test_a_large_body_goes_up_whole(provider: Provider) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 12_000_000}]}).encode()
    async with engine(provider.url) as remote:
        await ask(remote, body)
    assert provider.requests[0].body == body
    assert provider.requests[0].header("content-length") == str(len(body))


async def test_only_headers_of_the_hop_and_reefs_own_are_dropped(provider: Provider) -> None:
    sent: Headers = [
        (b"Host", b"127.0.0.1:8900"),
        (b"Connection", b"keep-alive, X-Mine"),
        (b"X-Mine", b"1"),
        (b"Keep-Alive", b"5"),
        (b"TE", b"trailers"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"7"),
        (b"Expect", b"100-continue"),
        (b"X-Reef-Token", b"secret"),
        (b"X-Reef-Scenario", b"pi"),
        (b"Content-Type", b"application/json"),
        (b"anthropic-beta", b"a-2026"),
        (b"X-Custom", "é".encode()),
        (b"X-Twice", b"1"),
        (b"X-Twice", b"2"),
        (b"User-Agent", b"pi/1.6.0"),
    ]
    async with engine(provider.url) as remote:
        await ask(remote, headers=sent)
    got = provider.requests[0]
    names = [name for name, _ in got.headers]
    assert sorted(names) == sorted(
        ["host", "content-length", "content-type", "anthropic-beta", "x-custom", "x-twice", "x-twice", "user-agent"]
    )
    assert got.header("host") == provider.url.removeprefix("http://")
    assert got.header("content-length") == str(len(ASK))
    assert [value for name, value in got.headers if name == "x-twice"] == ["1", "2"]


async def test_nothing_is_added_that_the_client_did_not_send(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        await ask(remote, headers=[])
    assert {name for name, _ in provider.requests[0].headers} == {"host", "content-length"}


async def test_the_providers_headers_come_back_but_those_of_the_hop(provider: Provider) -> None:
    provider.headers |= {"anthropic-ratelimit-requests-remaining": "9", "x-reef-agent-record-id": "theirs"}
    async with engine(provider.url) as remote:
        response, _ = await ask(remote)
    names = {name.lower() for name, _ in response.headers}
    assert (b"anthropic-ratelimit-requests-remaining", b"9") in response.headers
    assert b"x-request-id" in names
    assert not names & {b"transfer-encoding", b"connection", b"x-reef-agent-record-id"}


async def test_compressed_answers_stay_compressed(provider: Provider) -> None:
    provider.gzip = True
    async with engine(provider.url) as remote:
        response, body = await ask(remote, ASK_WHOLE, headers=[*JSON, (b"accept-encoding", b"identity")])
    assert (b"content-encoding", b"gzip") in response.headers
    assert (b"content-length", str(len(body)).encode()) in response.headers
    assert body.startswith(b"\x1f\x8b")
    assert provider.requests[0].header("accept-encoding") == "identity"


async def test_redirects_are_handed_on_not_followed(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        response, _ = await ask(remote, path="/moved")
    assert response.status == 307
    assert (b"location", b"/v1/models") in response.headers
    assert [received.path for received in provider.requests] == ["/v1/moved"]


async def test_a_get_without_a_body_goes_through(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        response = await remote.relay(RelayRequest("GET", "/models", [], b""))
        body = b"".join([chunk async for chunk in response.chunks()])
        await response.close()
    assert json.loads(body)["data"][0]["id"] == "fake-model"
    assert provider.requests[0].header("content-length") is None


@pytest.mark.parametrize(
    ("base", "api", "path", "reached"),
    [
        ("", "openai", "/chat/completions", "/v1/chat/completions"),
        ("/", "openai", "/chat/completions", "/v1/chat/completions"),
        ("/v1", "openai", "/chat/completions", "/v1/chat/completions"),
        ("/v1/", "openai", "/v1/chat/completions", "/v1/chat/completions"),
        ("/api/paas/v4", "openai", "/chat/completions", "/api/paas/v4/chat/completions"),
        ("", "anthropic", "/messages", "/v1/messages"),
        ("/v1", "anthropic", "/messages", "/v1/messages"),
        ("/anthropic", "anthropic", "/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens"),
    ],
)
async def test_base_url_and_path_are_joined(provider: Provider, base: str, api: str, path: str, reached: str) -> None:
    async with engine(provider.url + base, api=api) as remote:
        await ask(remote, path=f"{path}?beta=true&q=a%2Fb")
    assert (provider.requests[0].path, provider.requests[0].query) == (reached, "beta=true&q=a%2Fb")


@pytest.mark.parametrize(
    ("config", "dialects"),
    [
        ({"api": "openai"}, {Dialect.CHAT}),
        ({"api": "anthropic"}, {Dialect.MESSAGES}),
        ({"base_url": "https://api.openai.com/v1"}, {Dialect.CHAT, Dialect.RESPONSES}),
        ({"dialects": ("responses", "messages")}, {Dialect.RESPONSES, Dialect.MESSAGES}),
    ],
)
def test_a_provider_speaks_what_its_api_address_or_owner_says(config: Any, dialects: set[Dialect]) -> None:
    """And passes on whatever else there is."""
    remote = Remote("a", RemoteConfig(**{"base_url": "http://x", **config}))
    assert remote.dialects == dialects | {Dialect.OTHER}


# -- faults -----------------------------------------------------------------------------------------


async def test_an_error_answer_is_an_answer_with_its_headers(provider: Provider) -> None:
    provider.faults.append(Fault(status=429, headers={"retry-after": "7", "anthropic-ratelimit-unified-status": "no"}))
    async with engine(provider.url) as remote:
        response, body = await ask(remote)
    assert response.status == 429
    assert (b"retry-after", b"7") in response.headers
    assert (b"anthropic-ratelimit-unified-status", b"no") in response.headers
    assert json.loads(body)["error"]["type"] == "rate_limit_error"


async def test_a_closed_port_is_named_with_the_command_that_helps() -> None:
    async with engine("http://127.0.0.1:9/v1", key="agent") as remote:
        with pytest.raises(UpstreamUnreachable) as caught:
            await ask(remote, headers=[(b"authorization", KEY.encode())])
        status = remote.status()
    assert caught.value.message == "127.0.0.1 cannot be reached: Connection refused"
    assert caught.value.hint == "reef doctor"
    assert (status.state, status.detail) == (EngineState.FAILED, caught.value.message)
    assert KEY not in repr(caught.value)


async def test_an_unknown_host_is_named_without_the_urls_secrets() -> None:
    async with engine("http://user:hunter2@nowhere.invalid/v1?key=hunter2") as remote:
        with pytest.raises(UpstreamUnreachable, match=r"nowhere\.invalid cannot be reached") as caught:
            await ask(remote)
    assert "hunter2" not in caught.value.message


async def test_no_answer_before_the_first_byte_is_unreachable(provider: Provider) -> None:
    provider.faults.append(Fault(drop=True))
    async with engine(provider.url) as remote:
        with pytest.raises(UpstreamUnreachable, match=r"127\.0\.0\.1 cannot be reached"):
            await ask(remote)
        assert remote.status().running == 0


async def test_silence_is_given_up(provider: Provider) -> None:
    provider.faults.append(Fault(hang=True))
    async with engine(provider.url, read_seconds=0.2) as remote:
        with pytest.raises(UpstreamUnreachable, match="did not answer in time"):
            await ask(remote)


async def test_silence_inside_an_answer_is_given_up(provider: Provider) -> None:
    provider.pace = 30
    async with engine(provider.url, read_seconds=0.2) as remote:
        with pytest.raises(EngineError, match="nothing came for too long"):
            await ask(remote)


async def test_a_break_inside_an_answer_comes_after_what_was_sent(provider: Provider) -> None:
    provider.faults.append(Fault(after=3))
    async with engine(provider.url) as remote:
        response = await remote.relay(RelayRequest("POST", "/chat/completions", JSON, ASK))
        got: list[bytes] = []
        with pytest.raises(EngineError, match="broke off its answer") as caught:
            await drain(response, got)
        await response.close()
    assert b"".join(got).count(b"\n\n") == 3
    assert not isinstance(caught.value, UpstreamUnreachable)


async def test_a_stale_connection_is_replaced_once(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        await ask(remote)
        provider.faults.append(Fault(drop=True))
        response, body = await ask(remote)
    assert response.status == 200
    assert body.endswith(b"data: [DONE]\n\n")
    assert provider.connections == 2
    assert len(provider.requests) == 3


async def test_it_is_not_tried_a_third_time(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        await ask(remote)
        provider.faults.extend([Fault(drop=True), Fault(drop=True)])
        with pytest.raises(UpstreamUnreachable):
            await ask(remote)
    assert len(provider.requests) == 3


async def test_what_breaks_after_a_while_is_not_sent_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider was at work on it: a second one would be paid for twice."""
    monkeypatch.setattr("daemon.engines.remote._STALE_SECONDS", 0.1)
    async with engine(provider.url) as remote:
        await ask(remote)
        provider.faults.append(Fault(wait=0.3, drop=True))
        with pytest.raises(UpstreamUnreachable):
            await ask(remote)
    assert len(provider.requests) == 2


async def test_after_a_success_the_trouble_is_forgotten(provider: Provider) -> None:
    provider.faults.append(Fault(drop=True))
    async with engine(provider.url) as remote:
        with pytest.raises(UpstreamUnreachable):
            await ask(remote)
        await ask(remote)
        assert remote.status().state is EngineState.READY


async def test_closing_inside_an_answer_drops_the_connection_at_once(provider: Provider) -> None:
    provider.pace = 30
    async with engine(provider.url) as remote:
        response = await remote.relay(RelayRequest("POST", "/chat/completions", JSON, ASK))
        assert await anext(aiter(response.chunks()))
        assert remote.status().running == 1
        await response.close()
        await eventually(lambda: provider.lost == 1)  # long before its next event
        assert remote.status().running == 0


async def test_a_cancelled_wait_for_an_answer_drops_the_connection(provider: Provider) -> None:
    provider.faults.append(Fault(hang=True))
    async with engine(provider.url) as remote:
        waiting = asyncio.ensure_future(ask(remote))
        await eventually(lambda: len(provider.requests) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await eventually(lambda: provider.lost == 1)
        assert remote.status().running == 0


async def test_a_finished_answer_gives_its_connection_back(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        for _ in range(5):
            await ask(remote)
    assert provider.connections == 1


async def test_many_at_once_each_get_their_own_answer(provider: Provider) -> None:
    provider.echo = True
    bodies = [json.dumps({"n": n, "messages": []}).encode() for n in range(40)]
    async with engine(provider.url) as remote:
        answers = await asyncio.gather(*(ask(remote, body) for body in bodies))
    texts = {json.loads(body)["choices"][0]["message"]["content"] for _, body in answers}
    assert len(texts) == 40


async def test_an_engine_can_be_used_again_after_close(provider: Provider) -> None:
    remote = Remote("far", RemoteConfig(base_url=provider.url))
    await ask(remote)
    await remote.close()
    await ask(remote)
    await remote.close()
    await remote.close()


# -- odd servers, TLS and proxies -------------------------------------------------------------------


@asynccontextmanager
async def raw_server(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers everything with these bytes and closes; (its authority, what it got)."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", got


@pytest.mark.parametrize("lines", [b"Transfer-Encoding: chunked\r\n" * 2, b"Transfer-Encoding: chunked, chunked\r\n"])
async def test_a_doubled_transfer_encoding_is_read(lines: bytes) -> None:
    """BUGS B054."""
    answer = b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n2\r\nok\r\n0\r\n\r\n"
    async with raw_server(answer) as (authority, _), engine(f"http://{authority}") as remote:
        response, body = await ask(remote)
    assert body == b"ok"
    assert response.headers == []


async def test_a_header_that_cannot_be_sent_takes_no_answer_along() -> None:
    """aiohttp reads control characters in a value, and no server writes them."""
    answer = b"HTTP/1.1 200 OK\r\nx-a: a\x01b\r\nx-b: caf\xc3\xa9\r\ncontent-length: 2\r\n\r\n{}"
    async with raw_server(answer) as (authority, _), engine(f"http://{authority}") as remote:
        response, body = await ask(remote)
    assert (response.headers, body) == ([(b"x-b", b"caf\xc3\xa9"), (b"content-length", b"2")], b"{}")


async def test_a_status_that_is_none_is_told() -> None:
    answer = b"HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}"
    async with raw_server(answer) as (authority, _), engine(f"http://{authority}") as remote:
        with pytest.raises(UpstreamUnreachable, match="status 999"):
            await ask(remote)


async def test_an_answer_that_is_no_http_is_told() -> None:
    async with raw_server(b"SSH-2.0-OpenSSH\r\n\r\n") as (authority, _), engine(f"http://{authority}") as remote:
        with pytest.raises(UpstreamUnreachable, match=r"127\.0\.0\.1 cannot be reached"):
            await ask(remote)


async def test_a_certificate_nobody_trusts_is_told(tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    files = ["-keyout", str(tmp_path / "k"), "-out", str(tmp_path / "c")]
    subprocess.run([*made, *files], check=True, capture_output=True, timeout=30)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "c", tmp_path / "k")
    async with raw_server(b"", tls) as (authority, _), engine(f"https://{authority}") as remote:
        with pytest.raises(UpstreamUnreachable, match="its certificate is not trusted"):
            await ask(remote)


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_a_far_provider_is_reached_through_the_environments_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    async with raw_server(ANSWER) as (authority, got), engine("http://far.example/v1") as remote:
        monkeypatch.setenv("http_proxy", f"http://{authority}")
        _, body = await ask(remote)
        assert body == b"ok"
        assert got[0].startswith(b"POST http://far.example/v1/chat/completions HTTP/1.1")


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy", "HTTP_PROXY"])
async def test_a_loopback_provider_never_is(provider: Provider, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    for url in (provider.url, provider.url.replace("127.0.0.1", "localhost")):
        async with engine(url) as remote:
            response, _ = await ask(remote)
        assert response.status == 200


async def test_a_proxy_of_a_kind_not_spoken_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hunter2@127.0.0.1:9")
    async with engine("http://far.example") as remote:
        with pytest.raises(UpstreamUnreachable, match="proxy speaks socks5") as caught:
            await ask(remote)
    assert "hunter2" not in caught.value.message


async def test_a_proxy_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with engine("http://far.example") as remote:
        with pytest.raises(UpstreamUnreachable, match=r"the proxy 127\.0\.0\.1: "):
            await ask(remote)


def test_the_class_is_what_the_proxy_expects() -> None:
    remote: RelayEngine = Remote("far", RemoteConfig(base_url="http://x/v1"))
    status = remote.status()
    assert (status.name, status.kind, status.state, status.detail) == ("far", "remote", EngineState.READY, "x")


async def test_the_response_is_what_the_proxy_expects(provider: Provider) -> None:
    async with engine(provider.url) as remote:
        response: RelayResponse = await remote.relay(RelayRequest("POST", "/chat/completions", JSON, ASK))
        await response.close()
        await response.close()
        assert remote.status().running == 0
