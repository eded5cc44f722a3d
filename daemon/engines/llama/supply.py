"""The supply of a worker: loads on the first request, replaces it when another model is chosen or when it is gone.

One load serves all who wait; who leaves does not stop it. A worker that is replaced finishes what it is doing; one that
nobody has used for a while gives its memory back. No process of ours is left behind by `close`.
"""

import asyncio
import importlib.util
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from daemon.core.config import EmbeddedConfig
from daemon.core.errors import EngineUnavailable, ReefError
from daemon.engines.base import EngineState, ModelFile
from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.process import Speeds, WorkerDied, WorkerProcess
from daemon.engines.llama.watch import Patience

_SLOWER: Final = "without the processor's matrix kernels: the installed build of llama.cpp faults on them"


class Supply:
    """At most one worker that serves. ``model`` says which file; it is asked anew each time."""

    def __init__(
        self,
        model: Callable[[], ModelFile | None],
        config: EmbeddedConfig,
        log: Path,
        *,
        changed: Callable[[], None],
        patience: Patience,
    ) -> None:
        self.restarts = 0
        self.progress: float | None = None
        self.weights: str | None = None
        self._choose = model
        self._config = config
        self._log = log
        self._changed = changed
        self._patience = patience
        self._worker: WorkerProcess | None = None
        self._loading: tuple[str, asyncio.Task[WorkerProcess]] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False
        self._failed: ReefError | None = None
        self._plain = False
        self._speeds = Speeds()

    @property
    def current(self) -> WorkerProcess | None:
        return self._worker

    @property
    def speeds(self) -> Speeds:
        """The running worker's, or the last one's."""
        worker = self._worker
        return worker.speeds if worker is not None and worker.speeds.prompt is not None else self._speeds

    def state(self) -> tuple[EngineState, str | None]:
        if self._loading is not None:
            return EngineState.LOADING, None
        if self._worker is not None and self._worker.alive:
            return EngineState.READY, _SLOWER if self._plain else None
        if importlib.util.find_spec("llama_cpp") is None:
            return EngineState.MISSING, "llama-cpp-python is not installed"
        if self._choose() is None:
            return EngineState.MISSING, "no model is chosen"
        if self._failed is not None:
            return EngineState.FAILED, self._failed.message
        return EngineState.OFF, None

    def _wanted(self) -> ModelFile:
        if self._closed:
            raise self._shutting_down()
        model = self._choose()
        if importlib.util.find_spec("llama_cpp") is None:
            raise EngineUnavailable(
                "the embedded engine is not installed",
                hint="run install.sh again, or name a remote engine in the configuration",
            )
        if model is None:
            raise EngineUnavailable("no model is chosen", hint="reef models add default")
        return model

    @staticmethod
    def _shutting_down() -> EngineUnavailable:
        return EngineUnavailable("the engine is shutting down", hint="reef start")

    async def worker(self) -> WorkerProcess:
        """A worker with the model wanted now. One load serves all who wait; who leaves does not stop it."""
        model = self._wanted()
        if self._idle is not None:
            self._idle.cancel()
        worker = self._worker
        if worker is not None and worker.alive and worker.spec.sha256 == model.sha256:
            return worker
        if self._loading is None or self._loading[0] != model.sha256:
            before = self._loading[1] if self._loading is not None else None
            task = asyncio.create_task(self._load(model, before))
            self._loading = (model.sha256, task)
            task.add_done_callback(self._loaded)
        task = self._loading[1]
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():  # it is who asks here that was cancelled
                raise
            if self._closed:
                raise self._shutting_down() from None
            raise EngineUnavailable("the model was changed while it loaded", hint="send the request again") from None

    async def _load(self, model: ModelFile, before: "asyncio.Task[WorkerProcess] | None") -> WorkerProcess:
        if before is not None:
            before.cancel()  # it may never end
            await asyncio.gather(before, return_exceptions=True)
        if self._worker is not None:
            self._retire(self._worker)
            self._worker = None
        self.progress = 0.0
        self._changed()
        try:
            worker = await self._start(model)
        except WorkerDied as error:
            raise EngineUnavailable(f"{error} while it loaded {model.name!r}", hint="reef logs") from error
        self._worker, self.weights = worker, model.sha256
        return worker

    async def _start(self, model: ModelFile) -> WorkerProcess:
        try:
            return await self._launch(model)
        except WorkerDied as error:
            if error.code != -signal.SIGILL or self._plain:
                raise
            # Built with kernels that fault here: seen with AMX code of gcc 12. Slower ones do, from now on.
            self._plain = True
            return await self._launch(model)

    async def _launch(self, model: ModelFile) -> WorkerProcess:
        config = self._config
        spec = WorkerSpec(
            path=str(model.path),
            name=model.name,
            sha256=model.sha256,
            context=config.context,
            parallel=config.parallel,
            threads=config.threads,
            plain=self._plain,
            beat=self._patience.beat,
        )
        worker = WorkerProcess(
            spec, self._log, patience=self._patience, progress=self._progressed, ended=lambda: self._ended(worker)
        )
        await worker.start()
        return worker

    def _loaded(self, task: "asyncio.Task[WorkerProcess]") -> None:
        if self._loading is not None and self._loading[1] is task:
            self._loading = None
        self._failed = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = error if isinstance(error, ReefError) else EngineUnavailable(str(error))
        self._changed()

    def _progressed(self, done: float) -> None:
        self.progress = done
        self._changed()

    def _ended(self, worker: WorkerProcess) -> None:
        """A worker's process is gone; if it was the one that serves, the next request starts another."""
        if worker is self._worker:
            self._speeds = worker.speeds
            self._worker = None
            self.restarts += 1
            self._changed()

    def _retire(self, worker: WorkerProcess) -> None:
        """Stop a worker once it has finished what it is doing."""

        async def drain() -> None:
            try:
                await worker.drained()
            finally:
                await worker.stop()

        task = asyncio.create_task(drain())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    def rest(self, *, busy: bool) -> None:
        """Start the idle clock when nothing is going on."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._config.idle_unload_seconds and not (busy or self._closed):
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._config.idle_unload_seconds, self._unload)

    def _unload(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._speeds = worker.speeds
            self._retire(worker)
            self._changed()

    async def close(self) -> None:
        """End the worker. What it was answering fails."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._loading is not None:
            self._loading[1].cancel()
            await asyncio.gather(self._loading[1], return_exceptions=True)
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.stop()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
