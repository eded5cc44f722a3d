"""``models/registry.json``: the models of one home by name, and which of them is active.

Changed under a lock and replaced whole. A relative file lies in the folder itself, since `Models.remove` deletes it;
whatever else stands there is refused, never half understood.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from daemon.core.errors import Conflict, NotFound, StoreError
from daemon.core.locks import locked
from daemon.core.paths import write_private

_VERSION: Final = 1


class Entry(msgspec.Struct):
    """As in `ModelFile`. ``file``: a name where Reef put it there, else the absolute path of the person's own."""

    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    source: str

    def __post_init__(self) -> None:
        if not self.is_own and "/" in self.file:
            raise ValueError(f"{self.file!r} leads out of the folder")

    @property
    def is_own(self) -> bool:
        """Whether the file is the person's."""
        return Path(self.file).is_absolute()


class State(msgspec.Struct):
    version: int
    active: str | None
    models: list[Entry]

    def find(self, name: str) -> Entry:
        """Raises NotFound."""
        for entry in self.models:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.models) or "none yet"
        raise NotFound(f"no model is called {name!r}", hint=f"there are: {known}")

    def free(self, name: str, *, exact: bool) -> str:
        """``name``, or one like it where that is taken. Raises Conflict where it must be ``exact``."""
        taken = {entry.name for entry in self.models}
        if name not in taken:
            return name
        if exact:
            raise Conflict(f"another model is called {name}", hint=f"choose another name, or reef models remove {name}")
        return next(f"{name}-{n}" for n in range(2, 1000) if f"{name}-{n}" not in taken)


class _Versioned(msgspec.Struct):
    version: int


class Registry:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "registry.json"
        self._lock = folder / "registry.lock"

    def read(self) -> State:
        """Raises StoreError."""
        try:
            raw = self._path.read_bytes()
            version = msgspec.json.decode(raw, type=_Versioned).version
            if version == _VERSION:
                return msgspec.json.decode(raw, type=State)
        except FileNotFoundError:
            return State(_VERSION, None, [])
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(f"cannot read {self._path}: {error}", hint="move it away; models stay") from error
        raise StoreError(f"{self._path} was written by a newer Reef", hint="upgrade with install.sh")

    @contextmanager
    def changing(self) -> Iterator[State]:
        """To be changed in place, and written back unless the block raises."""
        with locked(self._lock):
            state = self.read()
            yield state
            write_private(self._path, msgspec.json.format(msgspec.json.encode(state), indent=1))
