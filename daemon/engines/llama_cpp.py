"""The engine inside: llama.cpp in a worker process of its own.

Owns the worker's life: loads on the first request, replaces it when another model is chosen or when it crashed, gives
its memory back when idle. A crash of native code costs the requests it was answering, never the daemon. No llama.cpp
code runs in this process, and nothing here blocks the event loop.
"""

import asyncio
import importlib.util
import signal
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from daemon.core.config import EmbeddedConfig
from daemon.core.errors import ContextOverflow, EngineError, EngineUnavailable, ReefError
from daemon.core.generation import EngineEvent, Finished, Started
from daemon.core.records import ChatRequest, Text, ToolResult, Usage
from daemon.engines.base import EngineState, EngineStatus, LoraFile, ModelFile
from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.process import Speeds, WorkerDied, WorkerProcess

_SLOWER = "without the processor's matrix kernels: the installed build of llama.cpp faults on them"


class LlamaCpp:
    """`TokenEngine` over a worker. ``model`` says which file to serve; it is asked anew for each request."""

    name = "embedded"

    def __init__(
        self,
        *,
        model: Callable[[], ModelFile | None],
        config: EmbeddedConfig,
        log: Path,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        """``log`` gets llama.cpp's warnings; ``on_change`` is called when `status` shows another state."""
        self._choose = model
        self._config = config
        self._log = log
        self._changed = on_change or (lambda: None)
        self._worker: WorkerProcess | None = None
        self._loading: tuple[str, asyncio.Task[WorkerProcess]] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False
        self._failed: ReefError | None = None
        self._weights: str | None = None
        self._progress: float | None = None
        self._plain = False
        self._waiting = 0
        self._running = 0
        self._restarts = 0
        self._speeds = Speeds()
        self._total = Usage()

    async def warm(self) -> None:
        """Load now rather than on the first request. Raises as `generate` does."""
        await self._ready()
        self._rest()

    async def generate(
        self, request: ChatRequest, *, lora: LoraFile | None = None, background: bool = False
    ) -> AsyncGenerator[EngineEvent, None]:
        """See `TokenEngine.generate`. A request that a crash caught before its first event is run once more.

        The worker brings ``lora`` in if it does not have it: after a crash, or when it gave it back.
        """
        self._waiting += 1
        started = False
        try:
            for attempt in (1, 2):
                worker = await self._ready()
                _check_size(request, worker)
                events = worker.generate(request, lora, background)
                try:
                    async for event in events:
                        if isinstance(event, Started):
                            started = True
                            self._waiting -= 1
                            self._running += 1
                        elif isinstance(event, Finished):
                            self._count(event.usage)
                        yield event
                    return
                except WorkerDied as error:
                    if started or attempt == 2:
                        raise EngineError(f"{error} while it answered", hint="send the request again") from error
                finally:
                    await events.aclose()
        finally:
            if started:
                self._running -= 1
            else:
                self._waiting -= 1
            self._rest()

    async def load(self, lora: LoraFile) -> float:
        """See `TokenEngine.load`."""
        self._waiting += 1
        try:
            for attempt in (1, 2):
                worker = await self._ready()
                try:
                    return await worker.load(lora)
                except WorkerDied as error:
                    if attempt == 2:
                        raise EngineError(f"{error} while it loaded {lora.path}", hint="reef logs") from error
            raise AssertionError("two attempts either return or raise")
        finally:
            self._waiting -= 1
            self._rest()

    async def count(self, request: ChatRequest) -> int:
        """The prompt's length; exact for a conversation that starts here, a few tokens off where a long one goes on
        from answers whose tokens are not those the tokenizer would choose."""
        worker = await self._ready()
        try:
            return await worker.count(request)
        except WorkerDied as error:
            raise EngineError(f"{error} while it counted", hint="send the request again") from error
        finally:
            self._rest()

    def weights(self, lora: LoraFile | None = None) -> str | None:
        return lora.weights if lora is not None else self._weights

    def status(self) -> EngineStatus:
        worker = self._worker
        speeds = worker.speeds if worker is not None and worker.speeds.prompt is not None else self._speeds
        state, detail = self._state()
        model = self._choose()
        return EngineStatus(
            name=self.name,
            kind="llama.cpp",
            state=state,
            model=model.name if model else None,
            detail=detail,
            progress=self._progress if state is EngineState.LOADING else None,
            memory_mb=worker.memory_mb() if worker is not None else None,
            running=self._running,
            waiting=self._waiting,
            restarts=self._restarts,
            prompt_speed=speeds.prompt,
            decode_speed=speeds.decode,
            prompt_tokens=self._total.prompt,
            cached_tokens=self._total.cached,
            completion_tokens=self._total.completion,
            loras=worker.loras if worker is not None else 0,
        )

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

    # -- the worker's life ----------------------------------------------------------------------------

    def _state(self) -> tuple[EngineState, str | None]:
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

    async def _ready(self) -> WorkerProcess:
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
        self._progress = 0.0
        self._changed()
        try:
            worker = await self._start(model)
        except WorkerDied as error:
            raise EngineUnavailable(f"{error} while it loaded {model.name!r}", hint="reef logs") from error
        self._worker, self._weights = worker, model.sha256
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
        )
        worker = WorkerProcess(spec, self._log, progress=self._progressed, ended=lambda: self._ended(worker))
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
        self._progress = done
        self._changed()

    def _ended(self, worker: WorkerProcess) -> None:
        """A worker's process is gone; if it was the one that serves, the next request starts another."""
        if worker is self._worker:
            self._speeds = worker.speeds
            self._worker = None
            self._restarts += 1
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

    def _rest(self) -> None:
        """Start the idle clock when nothing is going on."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._config.idle_unload_seconds and not (self._running or self._waiting or self._closed):
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._config.idle_unload_seconds, self._unload)

    def _unload(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._speeds = worker.speeds
            self._retire(worker)
            self._changed()

    def _count(self, usage: Usage) -> None:
        total = self._total
        self._total = Usage(
            prompt=total.prompt + usage.prompt,
            completion=total.completion + usage.completion,
            cached=total.cached + usage.cached,
        )


def _check_size(request: ChatRequest, worker: WorkerProcess) -> None:
    """Refuse here what cannot fit however it is tokenized, so that huge bodies never cross the pipe."""
    ready = worker.ready
    size = sum(
        len(part.text if isinstance(part, Text) else part.content)
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text | ToolResult)
    )
    if ready is not None and size > ready.limit * ready.widest:
        raise ContextOverflow(size // ready.widest, ready.limit)
