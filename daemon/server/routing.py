"""Which engines answer which model name, in the order in which they are asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final

from daemon.core.config import Config
from daemon.core.errors import NotFound
from daemon.core.prices import FREE, Price
from daemon.core.providers import Route, is_glob
from daemon.core.records import Dialect
from daemon.engines.base import RelayEngine, TokenEngine
from daemon.engines.models import Models

Engine = TokenEngine | RelayEngine

_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500

_PLAIN: Final[Mapping[str, str]] = {}
#: The model name that always means "what this scenario uses".
DEFAULT_MODEL: Final = "default"


@dataclass(frozen=True, slots=True)
class Target:
    """One engine to ask; ``model``: what it calls the model, None: as the agent does. ``prices``: its models'."""

    engine: Engine
    model: str | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)


def another_may_answer(status: int) -> bool:
    """Whether the next engine is asked after such an answer: the fault is the engine's, not the request's."""
    return status == _TOO_MANY or status >= _SERVER_ERROR


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

    def choose(self, model: str, dialect: Dialect, routing: Mapping[str, str] = _PLAIN) -> Target:
        """The first of `targets`."""
        return self.targets(model, dialect, routing)[0]

    def targets(self, model: str, dialect: Dialect, routing: Mapping[str, str] = _PLAIN) -> tuple[Target, ...]:
        """At least one; an engine that does not speak the dialect is asked in another. ``routing``: a release's, asked
        before the configuration. Raises NotFound for a model nobody knows where the configuration says so.
        """
        if (instead := routing.get(model)) is not None:
            return self._rerouted(instead, dialect)
        routes = self._routes(model)
        if routes is None:
            return (self._default(model, dialect),)
        return tuple(self._target(route, model) for route in routes)

    def _rerouted(self, model: str, dialect: Dialect) -> tuple[Target, ...]:
        """Those for ``model``, or provider/model, by that name and not the one asked for."""
        engine, _, there = model.partition("/")
        if engine in self._remotes and there:
            return (self._remote(engine, there),)
        return tuple(
            target if target.engine is self._embedded or target.model else replace(target, model=model)
            for target in self.targets(model, dialect)
        )

    def model_names(self) -> list[str]:
        """What ``/v1/models`` lists: the default, local models, and exact names routed in the configuration."""
        local = [model.name for model in self._models.list()]
        routed = [name for name in self._config.models if not is_glob(name)]
        return list(dict.fromkeys([DEFAULT_MODEL, *local, *routed]))

    def _routes(self, model: str) -> tuple[Route, ...] | None:
        if model in self._config.models:
            return self._config.models[model]
        return next((routes for glob, routes in self._config.models.items() if fnmatchcase(model, glob)), None)

    def _default(self, model: str, dialect: Dialect) -> Target:
        """The default engine, or one that speaks the dialect where that one does not."""
        target = self._target(Route(self._config.engine), model)
        if target.engine is self._embedded or dialect in self._remotes[self._config.engine].dialects:
            return target
        speaks = (name for name, other in self._remotes.items() if dialect in other.dialects)
        return next((self._remote(name) for name in speaks), target)

    def _target(self, route: Route, model: str) -> Target:
        if route.engine == "embedded":
            self._check_known(model)
            return Target(self._embedded, prices=FREE)
        return self._remote(route.engine, route.model)

    def _remote(self, name: str, model: str | None = None) -> Target:
        return Target(self._remotes[name], model, self._config.engines[name].prices)

    def _check_known(self, model: str) -> None:
        if self._config.unknown_model == "error" and model not in self.model_names():
            raise NotFound(f"no model is called {model!r}", hint="reef models list, or unknown_model: default")
