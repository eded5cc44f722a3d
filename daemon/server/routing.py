"""Which engine answers which model name."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from daemon.core.config import Config
from daemon.core.errors import BadRequest, NotFound
from daemon.core.records import Dialect
from daemon.engines.base import RelayEngine, TokenEngine
from daemon.engines.models import Models

Engine = TokenEngine | RelayEngine

_API = {Dialect.CHAT: "openai", Dialect.MESSAGES: "anthropic"}

#: The model name that always means "what this scenario uses".
DEFAULT_MODEL = "default"


class Router:
    """``models:`` in the configuration first, then the default engine, then any engine that speaks the dialect."""

    def __init__(
        self, config: Config, embedded: TokenEngine, remotes: Mapping[str, RelayEngine], models: Models
    ) -> None:
        self._config = config
        self._embedded = embedded
        self._remotes = dict(remotes)
        self._models = models

    def engines(self) -> list[Engine]:
        return [self._embedded, *self._remotes.values()]

    def choose(self, model: str, dialect: Dialect) -> Engine:
        """Raises NotFound for a model nobody knows where the configuration says so, BadRequest for a dialect
        nobody speaks.
        """
        name = self._named(model)
        if name == "embedded":
            self._check_known(model)
            return self._embedded
        engine = self._remotes[name]
        if dialect in engine.dialects:
            return engine
        for other in self._remotes.values():
            if dialect in other.dialects:
                return other
        raise BadRequest(
            f"engine {name!r} does not speak {dialect.value}",
            hint=f"add an engine with api: {_API[dialect]} to the configuration",
        )

    def model_names(self) -> list[str]:
        """What ``/v1/models`` lists: the default, local models, and exact names routed in the configuration."""
        local = [model.name for model in self._models.list()]
        routed = [name for name in self._config.models if not set(name) & set("*?[")]
        return list(dict.fromkeys([DEFAULT_MODEL, *local, *routed]))

    def _named(self, model: str) -> str:
        if model in self._config.models:
            return self._config.models[model]
        for pattern, engine in self._config.models.items():
            if fnmatchcase(model, pattern):
                return engine
        return self._config.engine

    def _check_known(self, model: str) -> None:
        if self._config.unknown_model == "error" and model not in self.model_names():
            raise NotFound(f"no model is called {model!r}", hint="reef models list, or unknown_model: default")
