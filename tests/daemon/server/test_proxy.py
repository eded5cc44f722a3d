"""The data plane against a scripted provider: bytes, receipts, ends, faults."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Provider, running_provider

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture(scope="module")
def daemon(module_home: Home, provider: Provider) -> Iterator[RunningDaemon]:
    config = f"""
server: {{port: 0}}
engine: openai
engines:
  openai: {{base_url: "{provider.url}/v1", api: openai}}
  anthropic: {{base_url: "{provider.url}/v1", api: anthropic}}
  nobody: {{base_url: "http://127.0.0.1:1/v1"}}
models: {{"lost-*": nobody}}
"""
    with running_daemon(module_home, config) as running:
        yield running


def chat(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **fields}


def record(daemon: RunningDaemon, headers: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    return found
