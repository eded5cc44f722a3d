"""Configuration: one YAML file, typed, checked, with every default visible in one place.

``$REEF_HOME/config.yaml``, or the file given to ``reef serve -c``. Unknown keys are refused with the nearest one named;
only ``reef:`` (a recipe and that recipe's own settings) is open, since recipes declare their keys themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from daemon.core.errors import ConfigError
from daemon.core.providers import RemoteConfig, Route, check_providers, is_url
from daemon.core.settings import plain_values, typed

DEFAULT_PORT = 8900
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LAST_PORT = 65535
_LARGEST_ALPHA = 0.5
_LARGEST_DIGIT = 9


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where agents connect. ``port`` falls to the next free one unless it was set here."""

    host: str = "127.0.0.1"
    port: int | None = None
    max_body_mb: int = 64
    drain_seconds: float = 30.0
    #: Silence after which a stream gets its dialect's keep-alive. Clients begin to give up at 15 s.
    keepalive_seconds: float = 12.0


@dataclass(frozen=True, slots=True)
class EmbeddedConfig:
    """The engine inside: llama.cpp in a process of its own."""

    #: Longest conversation in tokens; None: what the model was trained on, at most 8192.
    context: int | None = None
    #: Requests that decode together.
    parallel: int = 8
    threads: int | None = None
    #: Seconds without a request after which the model's memory is given back; 0 keeps it.
    idle_unload_seconds: float = 900.0


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """``full`` survives a power cut, ``normal`` may lose the last records in one (never the database)."""

    durability: Literal["full", "normal"] = "full"


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    """Where OpenTelemetry spans of exchanges go (OTLP/HTTP); nowhere without an endpoint."""

    #: A collector's base URL, for example http://127.0.0.1:4318.
    endpoint: str = ""
    #: Whether spans also carry what was said, with secrets taken out.
    content: bool = False


@dataclass(frozen=True, slots=True)
class PrivacyConfig:
    """What is kept, and for how long."""

    #: Days after their last record that sessions are forgotten; 0 keeps all.
    retention_days: float = 90.0
    #: Folders (``~`` and globs allowed) whose requests are answered but not recorded; a `.reefignore` does the same.
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LearningConfig:
    """How candidates are judged, and what becomes of those that the gate accepts."""

    #: ``auto``: an accepted candidate is released; ``review``: it waits for `reef releases approve`; ``manual``: it is
    #: kept, and nobody is asked. Whatever it is, what can act by itself waits for a person.
    policy: Literal["auto", "review", "manual"] = "auto"
    #: The gate's error rate: how often a candidate that is no better may be accepted. It holds for the first that a
    #: scenario's tasks judge within 30 days; the n-th gets alpha / n^2, so that trying often does not help.
    alpha: float = 0.1
    #: Regression tasks that a candidate may lose, critical ones apart (none).
    lost_allowed: int = 1
    #: Hours after which a job that has not finished is stopped.
    job_hours: float = 12.0


@dataclass(frozen=True, slots=True)
class ReleasesConfig:
    """How long what was turned down is kept, and where releases go besides."""

    #: Days after which a candidate that the gate or a person turned down is given up.
    rejected_days: float = 30.0
    #: Where `reef releases push` takes the chains: a folder, or an address that git knows. Nowhere by default.
    remote: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioConfig:
    """What is different for one scenario; None: as in ``learning``."""

    policy: Literal["auto", "review", "manual"] | None = None
    #: The lowest and the highest mark where answers are scored, not only called good or bad: [1, 5]. Stored as 0 to 1.
    scores: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a daemon is told. ``engine`` serves what ``models`` does not route."""

    engine: str = "embedded"
    #: A model name nobody knows: answer with the default model, or refuse.
    unknown_model: Literal["default", "error"] = "default"
    #: Model name or glob → engine, ``{engine, model}``, or a list of them: the next is asked when one cannot answer.
    models: Mapping[str, tuple[Route, ...]] = field(default_factory=dict)
    server: ServerConfig = ServerConfig()
    embedded: EmbeddedConfig = EmbeddedConfig()
    engines: Mapping[str, RemoteConfig] = field(default_factory=dict)
    store: StoreConfig = StoreConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    learning: LearningConfig = LearningConfig()
    releases: ReleasesConfig = ReleasesConfig()
    scenarios: Mapping[str, ScenarioConfig] = field(default_factory=dict)
    #: The article's section: ``recipe`` and that recipe's own keys.
    reef: Mapping[str, Any] = field(default_factory=dict)


def load(path: Path) -> Config:
    """Read a file; raises ConfigError naming the file, the key and the value."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no configuration at {path}", hint="reef config show prints what a file can hold") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    return parse(text, source=str(path))


def parse(text: str, *, source: str = "config") -> Config:
    """Read YAML text. ``source`` names it in errors."""
    raw = plain_values(text, source)
    config = typed(Config, {} if raw is None else raw, source)
    _check(config, source)
    return config


def _check(config: Config, source: str) -> None:
    _check_ranges(config, source)
    check_providers(config.engines, config.models, config.engine, source)
    endpoint = config.telemetry.endpoint
    if endpoint and not (is_url(endpoint) and "@" not in endpoint):
        # The value is not repeated: there may be a password in it.
        raise ConfigError(
            f"{source}: telemetry.endpoint is not the URL of a collector, without a user",
            hint="for example http://127.0.0.1:4318",
        )


def loopback_only(host: str, where: str = "server.host") -> None:
    """Raises ConfigError for a host that is not this machine's loopback."""
    if host not in _LOOPBACK:
        raise ConfigError(
            f"{where} is {host!r}: Reef listens on this machine only",
            hint="set server.host to 127.0.0.1; reach it from elsewhere through an ssh tunnel",
        )


def _is_scale(scores: tuple[int, ...]) -> bool:
    return len(scores) == 2 and scores[0] < scores[1] <= _LARGEST_DIGIT


def _check_ranges(config: Config, source: str) -> None:
    loopback_only(config.server.host, f"{source}: server.host")
    port = config.server.port
    if port is not None and port > _LAST_PORT:
        raise ConfigError(f"{source}: server.port: {port} is not a port", hint=f"1 to {_LAST_PORT}; 0 for any free one")
    for name, scenario in config.scenarios.items():
        if scenario.scores is not None and not _is_scale(scenario.scores):
            raise ConfigError(
                f"{source}: scenarios.{name}.scores: {list(scenario.scores)} is no scale",
                hint="the lowest and the highest of digits, for example [1, 5]",
            )
    alpha = config.learning.alpha
    if not 0 < alpha <= _LARGEST_ALPHA:
        raise ConfigError(
            f"{source}: learning.alpha: {alpha} is no error rate", hint=f"above 0, at most {_LARGEST_ALPHA}"
        )
    for name, value in (("context", config.embedded.context), ("parallel", config.embedded.parallel)):
        if value == 0:
            raise ConfigError(f"{source}: embedded.{name}: at least 1 is needed, got 0")
