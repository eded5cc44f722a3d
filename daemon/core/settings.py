"""Settings from a file's plain values: a dataclass's fields are the known keys, their types the accepted values.

What does not fit is refused with the place, the key and the value named. A field of a tuple type takes one value or a
list; where those are dataclasses, text alone stands for the first field.
"""

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Hashable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from daemon.core.errors import ConfigError

_T = TypeVar("_T")


def plain_values(text: str, source: str) -> Any:
    """YAML as plain values. Raises ConfigError naming the line."""
    import yaml  # not at import: the CLI's hot commands never need it

    class Loader(yaml.SafeLoader):
        """Refuses what YAML's own takes without a word: the last of two equal keys."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            seen: set[str] = set()
            for key in (key for key, _ in node.value if isinstance(key.value, str)):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # a safe one
    except yaml.YAMLError as error:
        problem, mark = getattr(error, "problem", None) or "it cannot be read", getattr(error, "problem_mark", None)
        where = f"{source}, line {mark.line + 1}" if mark else source
        raise ConfigError(f"{where}: not YAML: {problem}", hint="correct that line, or the one before it") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nothing here is that deep") from error


def typed(cls: type[_T], raw: object, where: str) -> _T:
    """A dataclass of settings from a mapping: unknown keys and wrong types raise ConfigError, naming ``where``."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where}: expected a mapping, got {raw!r}")
    hints = get_type_hints(cls)
    for key in raw:
        if key not in hints:
            near = difflib.get_close_matches(str(key), hints, n=1)
            raise ConfigError(
                f"{where}: unknown key {key!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(hints)}",
            )
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # every caller's class is a dataclass
        if field.name not in raw and field.default is field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where}: {field.name} is missing")
    return cls(**{key: _convert(hints[key], value, f"{where}: {key}") for key, value in raw.items()})


def _convert(kind: Any, value: object, where: str) -> object:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        if value in args:
            return value
        raise ConfigError(f"{where}: {value!r} is not one of {', '.join(map(str, args))}")
    if origin in (typing.Union, types.UnionType):
        inner = next(arg for arg in args if arg is not type(None))
        return None if value is None else _convert(inner, value, where)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return typed(kind, value, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: expected a mapping, got {value!r}")
        return {str(key): _convert(args[1], item, f"{where}.{key}") for key, item in value.items()}
    if origin is tuple:
        return tuple(_convert(args[0], item, where) for item in _items(args[0], value))
    return _scalar(kind, value, where)


def _items(kind: Any, value: object) -> list[object]:
    items = value if isinstance(value, list) else [value]
    if dataclasses.is_dataclass(kind):
        first = dataclasses.fields(kind)[0].name
        return [{first: item} if isinstance(item, str) else item for item in items]
    return items


def _scalar(kind: Any, value: object, where: str) -> object:
    if kind is Any:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        if kind in (int, float) and not 0 <= value < math.inf:
            raise ConfigError(f"{where}: {value!r} is {'negative' if value < 0 else 'not a finite number'}")
        return value
    raise ConfigError(f"{where}: expected {kind.__name__}, got {value!r}")
