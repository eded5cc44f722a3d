"""The daemon's end of one worker process: starts it, carries requests over its pipes, ends it.

Runs in the event loop and never blocks it. A worker that dies fails what it was doing with `WorkerDied`, nothing else;
a worker that will not die is killed, and always reaped.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import daemon
from daemon.core.errors import BadRequest, EngineError
from daemon.core.generation import EngineEvent, Finished
from daemon.core.records import ChatRequest
from daemon.engines.base import LoraFile
from daemon.engines.llama.frames import (
    HEADER,
    Loaded,
    Ready,
    WorkerSpec,
    build,
    decode_error,
    decode_event,
    encode_lora,
    encode_request,
    pack,
    unpack,
)
from daemon.engines.llama.watch import Patience, Watch

_log = logging.getLogger("reef.engine")

#: Seconds a worker gets to leave by itself, then once more after SIGTERM.
_GRACE: Final = 1.0
#: Bytes from which glibc gives memory back when it is freed. Its own threshold grows with what is freed, and contexts
#: that come and go then leave 250 MB behind (measured, 30 of them).
_LARGE: Final = str(1 << 20)


class WorkerDied(Exception):
    """The process is gone. ``code`` is its exit status, negative for a signal; ``why``: what we ended it for."""

    def __init__(self, code: int, why: str | None = None) -> None:
        self.code = code
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        super().__init__(why or f"the engine's process ended ({name})")


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens a second, lately; None before the first request."""

    prompt: float | None = None
    decode: float | None = None


class WorkerProcess:
    """One worker. ``ready`` is set once the model is loaded, ``code`` once the process is gone."""

    def __init__(
        self,
        spec: WorkerSpec,
        log: Path,
        *,
        patience: Patience,
        progress: Callable[[float], None],
        ended: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.speeds = Speeds()
        self.ready: Ready | None = None
        self.code: int | None = None
        self.running = 0
        self.loras = 0
        self._log = log
        self._progress = progress
        self._ended = ended
        self._numbers = itertools.count(1)
        self._replies: dict[int, asyncio.Queue[tuple[str, Any] | None]] = {}
        self._failure: EngineError | None = None
        self._loaded = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._why: str | None = None
        self._watch = Watch(patience, self._end_stuck)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self.ready is not None and self.code is None

    def memory_mb(self) -> int | None:
        """Resident memory; None where /proc does not tell."""
        if self._process is None or self.code is not None:
            return None
        try:
            fields = Path(f"/proc/{self._process.pid}/status").read_text().split("VmRSS:")
            return int(fields[1].split()[0]) // 1024
        except (OSError, IndexError, ValueError):
            return None

    async def start(self) -> None:
        """Load the model. Raises the worker's own error (EngineError), or WorkerDied."""
        root = str(Path(daemon.__file__).parent.parent)
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        environment = {"MALLOC_MMAP_THRESHOLD_": _LARGE, **os.environ, "PYTHONPATH": path}
        log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "daemon.engines.llama.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env=environment,
            )  # fmt: skip
        finally:
            os.close(log)
        self._reader = asyncio.create_task(self._read(self._process))
        self._watch.start(lambda: bool(self.running) or self.ready is None)
        self._send(pack(self.spec))
        try:
            await self._loaded.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise
        if self._failure is not None:
            await self.stop()
            raise self._failure
        if self.ready is None:
            raise WorkerDied(self.code or 0, self._why)

    async def generate(
        self, request: ChatRequest, lora: LoraFile | None, background: bool
    ) -> AsyncGenerator[EngineEvent, None]:
        """Events of one request; closing the generator cancels it. Raises EngineError or WorkerDied."""
        number, replies = self._open("generate", request, lora=encode_lora(lora), background=background)
        done = False
        try:
            while not done:
                kind, value = await self._reply(replies)
                event = decode_event(kind, value)
                done = isinstance(event, Finished)
                yield event
        except EngineError:
            done = True
            raise
        finally:
            self._close(number)
            if not done:
                self._send(pack({"do": "cancel", "number": number}))

    async def load(self, lora: LoraFile) -> float:
        """See `TokenEngine.load`. Raises EngineError or WorkerDied."""
        return build(Loaded, await self._asked("load", None, lora=encode_lora(lora))).change

    async def count(self, request: ChatRequest) -> int:
        return cast(int, await self._asked("count", request))

    async def _asked(self, do: str, request: ChatRequest | None, **more: object) -> Any:
        """The one reply to a command."""
        number, replies = self._open(do, request, **more)
        try:
            _, value = await self._reply(replies)
            return value
        finally:
            self._close(number)

    async def drained(self) -> None:
        """Wait until nothing is running."""
        await self._quiet.wait()

    async def stop(self) -> None:
        """End the process: ask, then SIGTERM, then SIGKILL. Returns when it is reaped."""
        process, reader = self._process, self._reader
        if process is None or reader is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for word in (None, signal.SIGTERM, signal.SIGKILL):
            if word is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(word)
            await asyncio.wait([reader], timeout=_GRACE)
            if reader.done():
                return
        await reader

    def _open(
        self, do: str, request: ChatRequest | None, **more: object
    ) -> "tuple[int, asyncio.Queue[tuple[str, Any] | None]]":
        if self.code is not None:
            raise WorkerDied(self.code, self._why)
        number = next(self._numbers)
        try:
            body = encode_request(request) if request else None
            frame = pack({"do": do, "number": number, "request": body, **more})
        except UnicodeEncodeError:
            raise BadRequest("the request holds half a surrogate pair, which is no character") from None
        self._replies[number] = asyncio.Queue()
        self.running += 1
        self._quiet.clear()
        self._send(frame)
        return number, self._replies[number]

    def _close(self, number: int) -> None:
        del self._replies[number]
        self.running -= 1
        if not self.running:
            self._quiet.set()

    async def _reply(self, replies: "asyncio.Queue[tuple[str, Any] | None]") -> tuple[str, Any]:
        reply = await replies.get()
        if reply is None:
            raise WorkerDied(self.code or 0, self._why)
        if reply[0] == "Error":
            raise decode_error(reply[1])
        return reply

    def _send(self, frame: bytes) -> None:
        """Never waits: the worker reads its pipe all the time, and a dead one is noticed by `_read`."""
        stdin = self._process.stdin if self._process is not None else None
        if stdin is not None and not stdin.is_closing():
            stdin.write(frame)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Deliver frames until the pipe ends, then reap the process and fail what is open."""
        stdout = process.stdout
        assert stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (size,) = HEADER.unpack(await stdout.readexactly(HEADER.size))
                self._deliver(unpack(await stdout.readexactly(size)))
        self.code = await process.wait()
        self._watch.stop()
        for replies in self._replies.values():
            replies.put_nowait(None)
        self._loaded.set()
        self._ended()

    def _end_stuck(self, why: str) -> None:
        """Only SIGKILL reaches a stopped process; `_read` does the rest."""
        _log.error("%s", why)
        self._why = why
        if self._process is not None and self.code is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _deliver(self, frame: dict[str, Any]) -> None:
        if "speed" in frame:
            self.speeds = Speeds(*frame["speed"])
            self.loras = frame["loras"]
        for number, kind, value in frame.get("events", ()):
            replies = self._replies.get(number)
            if replies is not None:  # None: cancelled meanwhile
                replies.put_nowait((kind, value))
        if "beat" in frame:
            self._watch.heard(frame["beat"])
        elif "loading" in frame:
            self._progress(frame["loading"])
        elif "ready" in frame:
            self.ready = build(Ready, frame["ready"])
            self._loaded.set()
        elif "failed" in frame:
            self._failure = decode_error(frame["failed"])
            self._loaded.set()
