"""How a person wants the dashboard: ``$REEF_HOME/tui.yaml`` (theme, hints, keys by their id), read once at the start.

The file is the person's: what the program keeps there is one line of its own, the rest stays as it was written.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from textual.keys import Keys, _character_to_key

from daemon.core.errors import ConfigError
from daemon.core.paths import Home, private_directory, write_private
from daemon.core.settings import plain_values, typed
from reef_cli.tui.keys import EATEN, KEYS, Key, Place
from reef_cli.tui.themes import Theme

_NAMED: Final = frozenset(key.value for key in Keys) | {name for key in KEYS for name in key.keys}
_LEAVES: Final = "ctrl+c"
_EXAMPLES: Final = "for example g, +, f2, ctrl+g, space, pageup"


@dataclass(frozen=True, slots=True)
class Settings:
    """``keys`` gives an action, by its id, other keys than its own."""

    theme: Theme = "ansi"
    hints: bool = True
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


DEFAULTS: Final = Settings()


def load(home: Home) -> Settings:
    """The file's settings, or the defaults where there is none. Raises ConfigError naming the file and the value."""
    path = home.dashboard
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return DEFAULTS
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    return _parsed(text, str(path))


def _parsed(text: str, source: str) -> Settings:
    settings = typed(Settings, plain_values(text, source) or {}, source)
    rebound(settings.keys, f"{source}: keys")
    return settings


def keep(home: Home, name: str, value: str) -> None:
    """Write ``name: value`` into the file, in place of its line or at the end. Raises ConfigError."""
    path = home.dashboard
    private_directory(home.root)
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        changed = _with(text, name, value)
        _parsed(changed, str(path))  # what it would refuse the next time is not written
        write_private(path, changed.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot change {path}: {error}") from error


def _with(text: str, name: str, value: str) -> str:
    changed, times = re.subn(rf"^{name}:.*$", f"{name}: {value}", text, flags=re.M)
    if not times:
        changed = "".join(f"{line}\n" for line in (*text.splitlines(), f"{name}: {value}"))
    return changed


def rebound(changes: Mapping[str, tuple[str, ...]], where: str = "keys") -> tuple[Key, ...]:
    """The table of keys with these changed. Raises ConfigError for an id that is unknown, a key that is none or that
    terminals eat, and one that would mean two things in one place."""
    known = {key.id: key for key in KEYS}
    for id, names in changes.items():
        if id not in known:
            near = difflib.get_close_matches(id, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"{where}: no action is called {id!r}", hint=hint)
        for name in names:
            _check(name, f"{where}.{id}")
        known[id] = replace(known[id], keys=tuple(map(name_of, names)), shown=" ".join(names))
    table = tuple(known.values())
    for place in Place:
        _no_conflict(place, table, where)
    return table


def name_of(key: str) -> str:
    """Textual's name of a key as a person writes it: ``plus`` of ``+``."""
    return _character_to_key(key) if len(key) == 1 else key


def _check(key: str, where: str) -> None:
    if key == _LEAVES:
        raise ConfigError(f"{where}: {key} always leaves, when pressed twice")
    if name_of(key) in EATEN:
        raise ConfigError(f"{where}: many terminals keep {key} or make another key of it", hint=_EXAMPLES)
    if not (len(key) == 1 and key.isprintable()) and key not in _NAMED:
        raise ConfigError(f"{where}: there is no key {key!r}", hint=_EXAMPLES)


def _no_conflict(place: Place, table: tuple[Key, ...], where: str) -> None:
    taken: dict[str, str] = {}
    for key in table:
        for name in key.keys if place in key.places else ():
            if name in taken:
                raise ConfigError(
                    f"{where}: {name} would mean both {taken[name]} and {key.id} in {place}",
                    hint=f"give one of them another key: {taken[name]}, or {key.id}",
                )
            taken[name] = key.id
