"""``GET /metrics``: what is counted as it happens, and what is so just now. For the control token or the socket."""

import os
import resource
import sys
from collections import Counter
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.version import __version__
from daemon.engines.base import EngineState, EngineStatus
from daemon.server.control import read, runtime
from daemon.server.metrics import Family, Labels, text
from daemon.server.runtime import Runtime

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(request: Request) -> Response:
    daemon = runtime(request)
    counts, jobs = await read(daemon.store.counts), await read(daemon.store.learning.open_jobs)
    running = Counter(job.state.value for job in jobs)
    families = [
        Family("reef_build_info", "gauge", "The version that runs.", {(("version", __version__),): 1}),
        *daemon.metrics.families(),
        *_recording(daemon, counts),
        *_engines(daemon.engines()),
        Family(
            "reef_jobs", "gauge", "Jobs that are not over.",
            {(("state", state),): running[state] for state in ("queued", "running")},
        ),
        *_process(daemon),
    ]  # fmt: skip
    return Response(text(families), headers={"content-type": _TYPE})


def _recording(daemon: Runtime, counts: dict[str, int]) -> list[Family]:
    state = daemon.recorder.state()
    return [
        Family("reef_stored", "gauge", "What the store holds.", {(("what", name),): n for name, n in counts.items()}),
        Family("reef_recorder_queue", "gauge", "Writes that wait for the disk.", {(): daemon.store.waiting()}),
        Family("reef_recording", "gauge", "1 for how recording is.", _states(state.state)),
        Family(
            "reef_unrecorded_total", "counter", "Answered exchanges whose record was not confirmed in time.",
            {(): state.unrecorded},
        ),
        Family("reef_store_bytes", "gauge", "The database's files.", {(): _store_bytes(daemon)}),
    ]  # fmt: skip


def _states(now: str) -> dict[Labels, float]:
    return {(("state", state),): float(state == now) for state in ("on", "degraded", "paused")}


def _store_bytes(daemon: Runtime) -> int:
    path, size = daemon.home.database, 0
    for name in (path.name, f"{path.name}-wal"):
        try:
            size += path.with_name(name).stat().st_size
        except OSError:
            continue
    return size


def _engines(engines: list[EngineStatus]) -> list[Family]:
    def of(value: str) -> dict[Labels, float]:
        return {(("engine", engine.name),): getattr(engine, value) for engine in engines}

    def known(value: str) -> dict[Labels, float]:
        return {labels: number for labels, number in of(value).items() if number is not None}

    states: dict[Labels, float] = {
        (("engine", engine.name), ("state", state.value)): float(engine.state is state)
        for engine in engines
        for state in EngineState
    }
    memory: dict[Labels, float] = {
        (("engine", engine.name),): engine.memory_mb << 20 for engine in engines if engine.memory_mb is not None
    }
    return [
        Family("reef_engine_state", "gauge", "1 for the state an engine is in.", states),
        Family("reef_engine_running", "gauge", "Requests that an engine works on.", of("running")),
        Family("reef_engine_waiting", "gauge", "Requests that wait for an engine.", of("waiting")),
        Family("reef_engine_restarts_total", "counter", "Times an engine had to be started again.", of("restarts")),
        Family("reef_engine_memory_bytes", "gauge", "Memory of an engine's process.", memory),
        Family("reef_engine_tokens_per_second", "gauge", "How fast its last answers came.", known("tokens_per_second")),
        Family("reef_engine_cache_hit_ratio", "gauge", "How much of its last prompts was cached.", known("cache_hit")),
    ]


def _process(daemon: Runtime) -> list[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    times = os.times()
    return [
        Family("process_cpu_seconds_total", "counter", "CPU time of the daemon.", {(): times.user + times.system}),
        Family("process_start_time_seconds", "gauge", "When the daemon started.", {(): daemon.started_ns / 1e9}),
        Family("reef_memory_peak_bytes", "gauge", "Most memory that the daemon used.", {(): used.ru_maxrss * unit}),
    ]
