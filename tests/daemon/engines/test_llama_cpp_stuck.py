"""An engine process that is alive and does nothing: it is noticed, ended and replaced, and what it owed is told."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from daemon.core.errors import EngineError
from daemon.core.generation import Started
from daemon.engines.base import EngineState
from daemon.engines.llama.watch import Patience
from daemon.engines.llama_cpp import LlamaCpp
from tests.daemon.engines.asking import ask, collect, new_engine
from tests.daemon.engines.test_llama_cpp_life import gone, worker_pids

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: Enough for a busy machine to start a worker and to do a step.
PATIENCE = Patience(beat=0.5, missed=6, step=4.0)

#: Stops one thread of a process, and waits for its end. Not ours to trace: a tracer is told of stops in its `wait`.
_TRACER = """
import ctypes, os, sys
if ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), None, None):
    sys.exit(1)
os.waitpid(int(sys.argv[1]), 0x40000000)
print("stopped", flush=True)
os.waitpid(int(sys.argv[1]), 0x40000000)
"""


@contextlib.contextmanager
def thread_stopped(tid: int) -> Iterator[None]:
    """One thread of a process stands still, the others go on: what a hang in native code looks like."""
    with subprocess.Popen([sys.executable, "-c", _TRACER, str(tid)], stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        if not tracer.stdout.readline():
            pytest.skip("this machine lets nobody trace")
        try:
            yield
        finally:
            tracer.kill()


@contextlib.asynccontextmanager
async def impatient(path: Path, log: Path) -> AsyncIterator[LlamaCpp]:
    engine = new_engine(path, log, context=512, patience=PATIENCE)
    try:
        yield engine
    finally:
        await engine.close()


async def test_a_frozen_process_is_replaced_and_the_request_that_nobody_answered_yet_is_run_again(
    model_path: Path, tmp_path: Path
) -> None:
    async with impatient(model_path, tmp_path / "log") as engine:
        await engine.warm()
        [pid] = worker_pids()
        os.kill(pid, signal.SIGSTOP)
        answer = await collect(engine, ask("Hi", tokens=2))
        assert answer.finished.usage.completion >= 1
        assert gone(pid)
        assert engine.status().restarts == 1


async def test_a_process_that_freezes_while_it_answers_is_told_honestly(model_path: Path, tmp_path: Path) -> None:
    async with impatient(model_path, tmp_path / "log") as engine:
        events = engine.generate(ask("Tell me a long story.", tokens=400))
        assert isinstance(await anext(events), Started)
        [pid] = worker_pids()
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(EngineError, match=r"no sign of life for .* s and was ended while it answered"):
            async for _ in events:
                pass
        assert gone(pid)
        assert (await collect(engine, ask("Hi", tokens=2))).finished


@pytest.mark.skipif(sys.platform != "linux", reason="ptrace as on Linux")
async def test_a_thread_that_hangs_in_a_step_is_noticed_though_the_process_beats(
    model_path: Path, tmp_path: Path
) -> None:
    async with impatient(model_path, tmp_path / "log") as engine:
        events = engine.generate(ask("Tell me a long story.", tokens=400))
        assert isinstance(await anext(events), Started)
        [pid] = worker_pids()
        with thread_stopped(pid), pytest.raises(EngineError, match=r"hung for .* s in one step|no sign of life"):
            async for _ in events:
                pass
        assert gone(pid)
        assert (await collect(engine, ask("Hi", tokens=2))).finished


async def test_a_process_that_freezes_while_it_loads_is_ended_and_the_next_request_tries_again(
    model_path: Path, tmp_path: Path
) -> None:
    async with impatient(model_path, tmp_path / "log") as engine:
        waiting = asyncio.create_task(collect(engine, ask("Hi", tokens=2)))
        while not worker_pids():
            await asyncio.sleep(0.001)
        os.kill(worker_pids()[0], signal.SIGSTOP)
        with pytest.raises(EngineError, match=r"no sign of life for .* while it loaded"):
            await waiting
        assert engine.status().state is EngineState.FAILED
        assert (await collect(engine, ask("Hi", tokens=2))).finished


async def test_an_idle_process_may_sleep(model_path: Path, tmp_path: Path) -> None:
    async with impatient(model_path, tmp_path / "log") as engine:
        await engine.warm()
        [pid] = worker_pids()
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(PATIENCE.beat * (PATIENCE.missed + 1))
        os.kill(pid, signal.SIGCONT)
        assert (await collect(engine, ask("Hi", tokens=2))).finished
        assert worker_pids() == [pid]
