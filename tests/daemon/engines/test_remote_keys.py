"""Whose key goes to a provider, and that none is ever shown."""

import json
import os
from pathlib import Path

import pytest

from daemon.core.errors import EngineError
from daemon.core.paths import write_private
from daemon.engines.base import Headers, RelayEngine, RelayRequest
from tests.daemon.engines.conftest import engine
from tests.fakes.provider import Fault, Provider

ASK = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
JSON: Headers = [(b"content-type", b"application/json")]
KEY = "sk-canary-of-the-provider"


async def ask(remote: RelayEngine, headers: Headers = JSON) -> None:
    response = await remote.relay(RelayRequest("POST", "/chat/completions", headers, ASK))
    await response.close()


async def test_what_the_agent_sent_as_its_key_goes_upstream(provider: Provider) -> None:
    sent: Headers = [*JSON, (b"Authorization", b"Bearer theirs"), (b"x-api-key", b"also")]
    async with engine(provider.url) as remote:
        await ask(remote, headers=sent)
    assert provider.requests[0].header("authorization") == "Bearer theirs"
    assert provider.requests[0].header("x-api-key") == "also"


@pytest.mark.parametrize(
    ("api", "name", "value"), [("openai", "authorization", f"Bearer {KEY}"), ("anthropic", "x-api-key", KEY)]
)
async def test_a_key_of_our_own_takes_the_agents_place(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, api: str, name: str, value: str
) -> None:
    monkeypatch.setenv("FAR_KEY", KEY)
    sent: Headers = [*JSON, (b"Authorization", b"Bearer theirs"), (b"X-Api-Key", b"also"), (b"Cookie", b"c=1")]
    async with engine(provider.url, api=api, key="env:FAR_KEY") as remote:
        await ask(remote, headers=sent)
    got = {key: val for key, val in provider.requests[0].headers if key in ("authorization", "x-api-key", "cookie")}
    assert got == {name: value}


async def test_a_key_file_is_read_each_time(provider: Provider, tmp_path: Path) -> None:
    file = tmp_path / "key"
    async with engine(provider.url, key=f"file:{file}") as remote:
        for key in ("first", "second"):
            write_private(file, f"{key}\n".encode())
            await ask(remote)
    assert [received.header("authorization") for received in provider.requests] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("content", [None, b"", b"\n", b"two\nlines", b"\xff"])
async def test_a_key_that_cannot_be_had_is_told_without_showing_anything(
    provider: Provider, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "key"
    if content is not None:
        write_private(file, content)
    async with engine(provider.url, key=f"file:{file}") as remote:
        with pytest.raises(EngineError) as caught:
            await ask(remote)
        assert remote.status().running == 0
    assert str(file) in caught.value.message
    assert "lines" not in caught.value.message
    assert not provider.requests


async def test_no_key_means_that_the_agents_stays_here_too(provider: Provider) -> None:
    async with engine(provider.url, key="none") as remote:
        await ask(remote, headers=[*JSON, (b"Authorization", b"Bearer theirs"), (b"x-api-key", b"also")])
    assert provider.requests[0].header("authorization") is None
    assert provider.requests[0].header("x-api-key") is None


async def test_a_keyring_is_asked_once_and_again_when_the_provider_refuses_the_key(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "secret-tool"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nprintf "key-%s" $(wc -l < {tmp_path}/asked)\n')
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("sys.platform", "linux")
    async with engine(provider.url, key="keyring:far") as remote:
        await ask(remote)
        provider.faults.append(Fault(status=401))
        await ask(remote)
        await ask(remote)
    assert [one.header("authorization") for one in provider.requests] == ["Bearer key-1"] * 2 + ["Bearer key-2"]
    assert (tmp_path / "asked").read_text().splitlines() == ["lookup service reef account far"] * 2


async def test_an_unset_variable_is_named(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAR_KEY", raising=False)
    async with engine(provider.url, key="env:FAR_KEY") as remote:
        with pytest.raises(EngineError, match="FAR_KEY is not set"):
            await ask(remote)
