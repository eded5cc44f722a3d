"""Recipes by name: what there is, and how a name in the configuration becomes a class with its settings.

A recipe is named by its short name, by an entry point of the group ``reef.recipes``, or by ``package.module:Class``;
a module beside the configuration file will do, since its folder is on a job's path. Listing imports nothing, and the
daemon never imports a recipe: it asks a process of its own (``python -m recipes.registry NAME``).
"""

import dataclasses
import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final

from daemon.core.errors import ConfigError, RecipeError, ReefError
from daemon.core.settings import typed
from recipes.base import Recipe

RECIPES: Final = {
    "playbook": "recipes.playbook.recipe:PlaybookRecipe",
    "proposal": "recipes.proposal.recipe:ProposalRecipe",
    "sft": "recipes.sft.recipe:SFTRecipe",
}
#: Keys of ``reef:`` that mean the same for every recipe; one that declares them itself sees them, too.
_SHARED: Final = {"batch_size": int, "max_staleness": int}


@dataclass(frozen=True, slots=True)
class Entry:
    """``name`` is what claims and jobs go by; ``target`` is ``module:Class``."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Shared:
    """``batch_size``: units of news that start a job. ``max_staleness``: releases behind the head, None: any."""

    batch_size: int = 1
    max_staleness: int | None = None


def entries() -> list[Entry]:
    """Every recipe that has a name, ours first."""
    installed = {point.name: point.value for point in entry_points(group="reef.recipes")}
    return [Entry(name, target) for name, target in {**RECIPES, **installed, **RECIPES}.items()]


def find(name: str) -> Entry:
    """Raises RecipeError for a name that is neither known nor ``module:Class``."""
    known = entries()
    for entry in known:
        if name in (entry.name, entry.target):
            return entry
    module, colon, cls = name.partition(":")
    if not (colon and cls.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        names = ", ".join(entry.name for entry in known)
        raise RecipeError(f"no recipe is called {name!r}", hint=f"one of: {names}; or your own as my_module:MyRecipe")
    return Entry(name, name)


def load(entry: Entry) -> type[Recipe]:
    """Import the class. Raises RecipeError saying what is missing; whatever the module itself raises is in it, too."""
    module, _, name = entry.target.partition(":")
    try:
        cls = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise RecipeError(
                f"recipe {entry.target!r} cannot be loaded: there is no module {error.name!r}",
                hint="reef recipes list; your own module must lie beside the configuration file or be installed",
            ) from error
        raise RecipeError(f"recipe {entry.target!r} needs {error.name!r}, which is not installed") from error
    except AttributeError as error:
        raise RecipeError(f"recipe {entry.target!r} cannot be loaded: {error}") from error
    except Exception as error:  # a person's module: anything may happen
        raise RecipeError(f"recipe {entry.target!r} fails to import: {type(error).__name__}: {error}") from error
    lacking = [what for what in ("signals", "target", "Config") if not hasattr(cls, what)]
    if not (isinstance(cls, type) and issubclass(cls, Recipe)) or lacking:
        lacks = f" without {', '.join(lacking)}" if lacking else ", which is no recipe"
        raise RecipeError(f"{entry.target!r} is a {type(cls).__name__}{lacks}", hint="subclass recipes.base.Recipe")
    return cls


def configured(cls: type[Recipe], given: Mapping[str, Any]) -> tuple[Any, Shared]:
    """The recipe's own settings and the shared ones, from ``reef:`` without ``recipe``. Raises RecipeError."""
    own = {field.name: field for field in dataclasses.fields(cls.Config)}
    try:
        config = typed(cls.Config, {k: v for k, v in given.items() if k in own or k not in _SHARED}, "reef")
        defaults = {key: getattr(config, key) for key in _SHARED if key in own}
        shared = typed(Shared, {**defaults, **{k: v for k, v in given.items() if k in _SHARED}}, "reef")
    except ConfigError as error:
        raise RecipeError(error.message, hint=error.hint or f"settings: {', '.join([*own, *_SHARED])}") from error
    except TypeError as error:  # a setting without a default
        raise RecipeError(f"reef: {error}") from error
    if shared.batch_size < 1:
        raise RecipeError(f"reef: batch_size: at least 1 is needed, got {shared.batch_size}")
    return config, shared


def described(entry: Entry, given: Mapping[str, Any]) -> dict[str, Any]:
    """What people and the scheduler need to know of it. Raises RecipeError."""
    cls = load(entry)
    config, shared = configured(cls, given)
    return {
        "name": entry.name,
        "target": entry.target,
        "summary": str(getattr(cls, "summary", "")),
        "signals": [str(signal) for signal in cls.signals],
        "acquisition": str(cls.acquisition),
        "changes": str(cls.target),
        "config": dataclasses.asdict(shared) | dataclasses.asdict(config),
    }


def main() -> int:
    """``python -m recipes.registry``: a JSON array of [name, settings] on stdin, one JSON line each on stdout."""
    answer, sys.stdout = sys.stdout, sys.stderr  # what a module prints at import is not the answer
    for name, given in json.load(sys.stdin):
        try:
            told = described(find(name), given)
        except ReefError as error:
            told = {"name": name, **error.envelope()}
        print(json.dumps(told, default=str), file=answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
