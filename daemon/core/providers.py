"""Configured providers, and which model name goes to which of them.

A mistake is refused at the start, not at the first request that meets it: an engine that is not there, a glob that is
never reached, a fallback that would be sent another provider's key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal
from urllib.parse import urlsplit

from daemon.core import keys
from daemon.core.errors import ConfigError
from daemon.core.prices import Price


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """A provider: any OpenAI- or Anthropic-compatible base URL."""

    base_url: str = ""
    #: Which routes it speaks: ``openai`` (/chat/completions) or ``anthropic`` (/messages).
    api: Literal["openai", "anthropic"] = "openai"
    #: Whose key goes upstream: ``agent`` (what the agent sent), ``none``, ``keyring:NAME``, ``file:PATH`` (0600) or
    #: ``env:NAME``.
    key: str = "agent"
    connect_seconds: float = 10.0
    #: Longest silence of the provider before the exchange is given up.
    read_seconds: float = 600.0
    #: The dialects it speaks where its ``api`` does not say it: vLLM, Ollama and llama.cpp's server speak all three,
    #: OpenAI itself chat and responses. Requests in others are translated.
    dialects: tuple[Literal["chat", "messages", "responses"], ...] = ()
    #: Model name or glob, as the provider calls it → what it costs, where the provider itself does not say.
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model name goes: an engine, and what the model is called there (None: the name the agent sent)."""

    engine: str
    model: str | None = None


def check_providers(
    engines: Mapping[str, RemoteConfig], models: Mapping[str, tuple[Route, ...]], default: str, source: str
) -> None:
    """Raises ConfigError naming the file, the key and the value."""
    for name, remote in engines.items():
        _check_engine(name, remote, f"{source}: engines.{name}")
    _known_engine(engines, default, f"{source}: engine")
    for name, routes in models.items():
        _check_routes(engines, routes, f"{source}: models.{name}")
    for earlier, later in _shadowed(models):
        raise ConfigError(
            f"{source}: models.{later}: never asked, since models.{earlier} before it matches all of its names",
            hint=f"put {later!r} before {earlier!r}",
        )


def _known_engine(engines: Mapping[str, RemoteConfig], engine: str, where: str) -> None:
    known = {"embedded", *engines}
    if engine not in known:
        raise ConfigError(f"{where}: no engine is called {engine!r}", hint=f"known engines: {', '.join(sorted(known))}")


def _check_engine(name: str, remote: RemoteConfig, where: str) -> None:
    if name == "embedded":
        raise ConfigError(f"{where}: the name is taken by the engine inside", hint="choose another name")
    if not is_url(remote.base_url):
        raise ConfigError(
            f"{where}.base_url: {remote.base_url!r} is not a URL", hint="for example https://api.openai.com/v1"
        )
    parts = urlsplit(remote.base_url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(  # the value is not repeated: it may well hold a key
            f"{where}.base_url holds more than scheme, host and path", hint=f"a key belongs into {keys.FORMS}"
        )
    if not keys.is_source(remote.key):
        raise ConfigError(
            f"{where}.key must be agent, none, {keys.FORMS}", hint="never write a key into the configuration"
        )
    for earlier, later in _shadowed(remote.prices):
        raise ConfigError(
            f"{where}.prices.{later}: never used, since prices.{earlier} before it matches all of its names",
            hint=f"put {later!r} before {earlier!r}",
        )


def _check_routes(engines: Mapping[str, RemoteConfig], routes: tuple[Route, ...], where: str) -> None:
    if not routes:
        raise ConfigError(f"{where}: no engine is named", hint="for example [embedded]")
    for route in routes:
        _known_engine(engines, route.engine, where)
        if route.engine == "embedded" and route.model is not None:
            raise ConfigError(
                f"{where}: the engine inside answers with one model, not with {route.model!r} by name",
                hint=f"leave model out; reef models use {route.model}",
            )
    first = engines.get(routes[0].engine)
    for route in routes[1:]:
        remote = engines.get(route.engine)
        if remote is not None and remote.key == "agent" and not _same_place(first, remote):
            # The agent's key is meant for the first provider; a fallback is another company.
            raise ConfigError(
                f"{where}: the fallback {route.engine!r} would be sent the key that the agent has for"
                f" {routes[0].engine!r}",
                hint=f"set engines.{route.engine}.key to none, {keys.FORMS}",
            )


def _same_place(one: RemoteConfig | None, other: RemoteConfig) -> bool:
    return one is not None and urlsplit(one.base_url)[:2] == urlsplit(other.base_url)[:2]


def is_glob(name: str) -> bool:
    """Whether a name in ``models`` stands for many."""
    return bool(set(name) & set("*?["))


def _shadowed(models: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """(glob, a later glob that it covers): globs are tried in order, names before them."""
    globs = [name for name in models if is_glob(name)]
    return (
        (earlier, later) for i, earlier in enumerate(globs) for later in globs[i + 1 :] if fnmatchcase(later, earlier)
    )


def is_url(text: str) -> bool:
    """Whether it is http or https, with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address, a port that is none
        return False
