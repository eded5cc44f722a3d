"""One run of a wrapped agent: a private configuration directory, alive as long as its process.

The directory is links into one release's folder (resolved once, so that an upgrade never tears a session), files of its
own, and links to what belongs to the person. A lock that the agent's process inherits says that the run lives; pid
files would lie after a reboot. Whoever starts next sweeps what no process holds.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from adapters import edits, shelf, template
from adapters.agent import Adapter, Mode
from adapters.template import Source
from daemon.core.errors import ConfigError, NotFound
from daemon.core.locks import is_locked, locked
from daemon.core.paths import private_directory, write_private

_LOCK: Final = "lock"
#: How the names of runs begin, see `daemon.core.ids`.
_RUNS: Final = ("run", "check")
_SHELF_LINK: Final = "release"


class Place(NamedTuple):
    """Where one adapter keeps what its runs need, below its folder in Reef's home."""

    root: Path

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def shelf(self) -> Path:
        """Releases as the agent reads them, see `adapters.shelf`."""
        return self.root / "releases"

    @property
    def user(self) -> Path:
        """The person's own: conversations, logins and settings inside the agent. Upgrades leave it alone."""
        return self.root / "user"

    @property
    def edited(self) -> Path:
        """What they changed of the files that Reef rendered, see `adapters.edits`."""
        return self.root / "edited"

    @property
    def active(self) -> Path:
        """Which release each scenario's next run takes, see `adapters.active`."""
        return self.root / "active.json"

    @property
    def bytecode(self) -> Path:
        """What Python compiles of an agent's packages: beside them it would be in nobody's receipt."""
        return self.root / "pycache"

    @property
    def install(self) -> Path:
        """What was chosen at installation, for the wrapper."""
        return self.root / "install.json"

    def passing(self) -> tuple[Path, ...]:
        """What runs left behind that is nobody's, and files of Reef's whose writing was killed: an uninstall removes
        them."""
        cut = (path for name in ("receipt", "install.json", "active.json") for path in self.root.glob(f".{name}.*"))
        return self.sessions, self.shelf, self.active, self.bytecode, self.root / "turn", *cut


def installation(place: Place, name: str) -> dict[str, Any]:
    """What install.json says. Raises NotFound where the adapter is not installed, ConfigError where it says nothing."""
    again = f"reef harness install --adapter {name}"
    try:
        found: dict[str, Any] = json.loads(place.install.read_bytes())
    except (OSError, ValueError):
        raise NotFound(f"{name} is not installed", hint=again) from None
    words = found.get("command") if isinstance(found, dict) else None
    said = {"mode": "isolated", **found} if words else {}
    needed = [said.get(name) for name in ("scenario", "upgrade", "version", "mode")]
    if not isinstance(words, list) or not all(isinstance(one, str) for one in (*words, *needed)):
        raise ConfigError(f"{place.install} does not say what was chosen", hint=again)
    return found


@contextmanager
def turn(place: Place) -> Iterator[None]:
    """One start at a time decides what is on the shelf and which sessions live; it takes milliseconds."""
    private_directory(place.root)
    with locked(place.root / "turn"):
        yield


def living(place: Place) -> dict[str, str]:
    """Run → name of the release folder it reads, of all runs whose process lives. Call it with the turn held."""
    found = {}
    for directory in _directories(place):
        if _lives(directory):
            with suppress(OSError):
                found[directory.name] = (directory / _SHELF_LINK).readlink().name
    return found


def sweep(place: Place) -> dict[str, str]:
    """`living`, after removing the directories of all other runs, but for what a person changed in them."""
    for directory in _directories(place):
        if not _lives(directory):
            with suppress(OSError):
                for path in edits.of_session(directory, directory / _SHELF_LINK):
                    edits.keep(path, place.edited / directory.name / path.relative_to(directory))
            shutil.rmtree(directory, ignore_errors=True)
    return living(place)


def edited(place: Place) -> list[Path]:
    """What a person changed of the files that Reef rendered: kept, or not yet found by a start."""
    found = edits.kept(place.edited)
    if place.shelf.is_dir():
        with turn(place):
            found |= shelf.changed(place.shelf)
            for directory in _directories(place):
                found.update(edits.of_session(directory, directory / _SHELF_LINK))
    return sorted(found)


class Begun(NamedTuple):
    """For the process of a run: its environment (None: without that variable), and arguments before the person's."""

    environment: dict[str, str | None]
    arguments: list[str]


def begin(place: Place, run: str, folder: Path, *, adapter: Adapter, mode: Mode, values: Mapping[str, Any]) -> Begun:
    """Make the directory of a run that reads ``folder``; its process must be this one. Call it with the turn held."""
    directory = place.sessions / run
    for made in (place.sessions, directory, place.user):
        private_directory(made)
    _hold(directory / _LOCK)
    (directory / _SHELF_LINK).symlink_to(folder)
    own = {name.partition("/")[0] for name in (*mode.session, *mode.shared)}
    for entry in sorted(folder.iterdir()):
        if not entry.name.startswith(".") and entry.name not in own:
            _link(directory / entry.name, entry, opened=entry.name in mode.open)
    values = {
        **values,
        "REEF_SESSION_DIRECTORY": str(directory),
        "REEF_USER_DIRECTORY": str(place.user),
    }
    for name, source in mode.session.items():
        _write(directory / name, template.filled(source, values, adapter.folder))
    for name, source in mode.seeds.items():
        if not (place.user / name).exists():
            private_directory((place.user / name).parent)
            write_private(place.user / name, template.filled(source, values, adapter.folder).encode())
    for name in mode.shared:
        if name.endswith("/"):
            private_directory(place.user / name)
        (directory / name.rstrip("/")).symlink_to(place.user / name)
    edits.remember(directory, (name for name in mode.session if name not in mode.open))
    return Begun(variables(mode.environment, values), _arguments(mode, directory, values))


def _link(path: Path, entry: Path, *, opened: bool) -> None:
    """``opened``: a folder of the session's own with links in it, since the agent adds to it."""
    if not opened:
        path.symlink_to(entry)
        return
    path.mkdir(mode=0o700)
    for inner in entry.iterdir():
        (path / inner.name).symlink_to(inner)


def variables(said: Mapping[str, Source | None], values: Mapping[str, Any]) -> dict[str, str | None]:
    """A mode's environment for one run; None takes a variable away."""
    return {name: None if source is None else template.word(source, values) for name, source in said.items()}


def surroundings(mode: Mode) -> dict[str, Any]:
    """Places for what an agent runs, which is to find what the person has (None: no such variable) of what a mode sets
    for the agent itself."""
    theirs = {name: os.environ.get(name) for name in mode.environment}
    cache = theirs.get("XDG_CACHE_HOME", "")
    return {
        "REEF_THEIRS": theirs,
        "REEF_CACHE_HOME": (str(Path.home() / ".cache") if cache is None else cache)
        if "XDG_CACHE_HOME" in theirs
        else None,
        "REEF_UNSET": "XDG_CACHE_HOME" if cache is None else "",
    }


def _arguments(mode: Mode, directory: Path, values: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for one in mode.arguments:
        if _is_there(one.only, directory, values):
            for each in sorted((directory / one.each).iterdir()) if one.each else ("",):
                found += [template.word(source, {**values, "REEF_EACH": str(each)}) for source in one.words]
    return found


def _is_there(only: str, directory: Path, values: Mapping[str, Any]) -> bool:
    return not only or bool(values[only] if only.startswith("REEF_") else (directory / only).exists())


def _write(path: Path, text: str) -> None:
    """Not `write_private`: nothing needs a session's files after a power cut, and each fsync is milliseconds."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "x", encoding="utf-8", opener=_private) as file:
        file.write(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _directories(place: Place) -> list[Path]:
    """Whatever else lies there, where the folder is a link, is nobody's run."""
    found = place.sessions.iterdir() if place.sessions.is_dir() else ()
    return sorted(entry for entry in found if entry.is_dir() and entry.name.startswith(_RUNS))


def _hold(path: Path) -> None:
    """Lock for as long as this process lives, through exec. Node.js closes it to its own children. Where stdin or
    another is closed, its number is the next free one: the agent must not find the lock there.
    """
    first = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    handle = fcntl.fcntl(first, fcntl.F_DUPFD, 3)
    os.close(first)
    fcntl.flock(handle, fcntl.LOCK_EX)


def _lives(directory: Path) -> bool:
    with suppress(OSError):
        return is_locked(directory / _LOCK)
    return False
