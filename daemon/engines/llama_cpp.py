"""The engine inside: llama.cpp in a worker process of its own.

Carries requests to the worker that `daemon.engines.llama.supply` keeps. A crash of native code costs the requests it
was answering, never the daemon. No llama.cpp code runs in this process, and nothing here blocks the event loop.
"""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from daemon.core.config import EmbeddedConfig
from daemon.core.errors import BrokeOff, ContextOverflow, EngineError
from daemon.core.generation import EngineEvent, Finished, Started
from daemon.core.records import ChatRequest, Text, ToolResult, Usage
from daemon.engines.base import EngineState, EngineStatus, LoraFile, ModelFile
from daemon.engines.llama.process import WorkerDied, WorkerProcess
from daemon.engines.llama.supply import Supply
from daemon.engines.llama.watch import PATIENCE, Patience


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
        patience: Patience = PATIENCE,
    ) -> None:
        """``log`` gets llama.cpp's warnings; ``on_change`` is called when `status` shows another state."""
        self._choose = model
        self._supply = Supply(model, config, log, changed=on_change or (lambda: None), patience=patience)
        self._waiting = 0
        self._running = 0
        self._total = Usage()

    async def warm(self) -> None:
        """Load now rather than on the first request. Raises as `generate` does."""
        await self._supply.worker()
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
                worker = await self._supply.worker()
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
                        ended = BrokeOff if started else EngineError
                        raise ended(f"{error} while it answered", hint="send the request again") from error
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
                worker = await self._supply.worker()
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
        worker = await self._supply.worker()
        try:
            return await worker.count(request)
        except WorkerDied as error:
            raise EngineError(f"{error} while it counted", hint="send the request again") from error
        finally:
            self._rest()

    def weights(self, lora: LoraFile | None = None) -> str | None:
        return lora.weights if lora is not None else self._supply.weights

    def status(self) -> EngineStatus:
        worker, speeds = self._supply.current, self._supply.speeds
        state, detail = self._supply.state()
        model = self._choose()
        return EngineStatus(
            name=self.name,
            kind="llama.cpp",
            state=state,
            model=model.name if model else None,
            detail=detail,
            progress=self._supply.progress if state is EngineState.LOADING else None,
            memory_mb=worker.memory_mb() if worker is not None else None,
            context=worker.ready.limit if worker is not None and worker.ready is not None else None,
            running=self._running,
            waiting=self._waiting,
            restarts=self._supply.restarts,
            prompt_speed=speeds.prompt,
            tokens_per_second=speeds.decode,
            weights=self._supply.weights,
            prompt_tokens=self._total.prompt,
            cached_tokens=self._total.cached,
            completion_tokens=self._total.completion,
            loras=worker.loras if worker is not None else 0,
        )

    async def close(self) -> None:
        """End the worker. What it was answering fails."""
        await self._supply.close()

    def _rest(self) -> None:
        self._supply.rest(busy=bool(self._running or self._waiting))

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
