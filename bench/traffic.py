"""The parts of `bench.proxy` that touch the machine: programs compiled and started, load sent, CPU and memory read.

The provider (upstream.c) and the load generator (load.c) share one core, the server under test and all its children
have the other. Linux only: processors are set with taskset, CPU and memory come from /proc.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

_HERE: Final = Path(__file__).parent
_CORES: Final = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
_LOAD_CORE, _SERVER_CORE = str(_CORES[0]), str(_CORES[-1])
_PATH: Final = "/v1/chat/completions"
#: As upstream.c answers.
_ANSWER: Final = "".join(f"word{number} " for number in range(200))
_WORDS: Final = ("def", "return", "import", "class", "the", "a", "function", "file", "error", "test", "value")


class Run(TypedDict):
    """One run of the load generator: microseconds, but for ``rps`` (requests a second) and the counts."""

    status: int
    errors: int
    rps: float
    p50: float
    p99: float
    first: float
    chunk: float
    chunk_p99: float
    cpu: float


@dataclass(frozen=True)
class Start:
    """How a server is started, and how it wants to be asked."""

    command: Sequence[str]
    headers: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)
    model: str = "bench"
    seconds: float = 120.0


@dataclass
class Server:
    """Something that answers on a port: the provider itself where there is no ``process``."""

    name: str
    port: int
    process: subprocess.Popen[bytes] | None = None
    headers: Sequence[str] = ()
    model: str = "bench"

    def cpu(self) -> float:
        """Seconds of CPU that the whole process tree has used, less those of threads that have ended."""
        taken = 0.0
        for pid in self._tree():
            for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):
                    taken += int(task.read_text().split()[0]) / 1e9
        return taken

    def memory(self) -> float:
        """MB that the whole process tree has of its own, and its share of what it shares (PSS)."""
        kilobytes = 0
        for pid in self._tree():
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return kilobytes / 1024

    def _tree(self) -> list[int]:
        return [] if self.process is None else [self.process.pid, *_children(self.process.pid)]

    def settle(self) -> None:
        """Wait until it does nothing any more: work put off belongs to the request that caused it."""
        before, deadline = self.cpu(), time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.35)
            now = self.cpu()
            if now - before < 0.01:
                return
            before = now

    def stop(self) -> None:
        if self.process is None:
            return
        pids = self._tree()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
                break


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *_children(child)]
    return found


def compiled(folder: Path) -> None:
    """Make ``upstream`` and ``load`` there. Needs a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("bench.proxy needs a C compiler (cc)")
    for name in ("upstream", "load"):
        subprocess.run([compiler, "-O2", "-o", str(folder / name), str(_HERE / f"{name}.c")], check=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


@contextlib.contextmanager
def upstream(folder: Path) -> Iterator[Server]:
    server = started("direct", free_port(), Start([str(folder / "upstream")]), folder=folder, core=_LOAD_CORE)
    try:
        yield Server("direct", server.port)
    finally:
        server.stop()


def started(name: str, port: int, how: Start, *, folder: Path, core: str = _SERVER_CORE) -> Server:
    """A server that takes connections; its output is in ``folder``. Exits with its last words where it does not come
    up.
    """
    command = [*how.command, str(port)] if name == "direct" else list(how.command)
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["taskset", "-c", core, *command], env={**os.environ, **how.env}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    server, deadline = Server(name, port, process, how.headers, how.model), time.monotonic() + how.seconds
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return server
        time.sleep(0.05)
    server.stop()
    raise SystemExit(f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}")


def flush_time(folder: Path) -> float:
    """Milliseconds until 40 KB are on the disk, the median: nobody who records before the end can be faster."""
    taken = []
    with (folder / "flush").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(40_000))
            begin = time.perf_counter()
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken)


def body(folder: Path, size: int, *, stream: int = 0, pace: int = 0, model: str = "bench") -> Path:
    """A request of about that many bytes: what an agent sends, a conversation so far with one more message, another one
    each time. Beside it lies the request before that, ``.before``, to which the last answer in it belongs.
    """
    path = folder / f"{size}-{stream}-{pace}-{model}.json"
    if not path.exists():
        noise = random.Random(1)
        said = [{"role": "system", "content": _text(noise, 500)}, {"role": "user", "content": _text(noise, 200)}]
        end = [{"role": "assistant", "content": _ANSWER}, {"role": "user", "content": "@@NONCE00000000@ go on"}]
        while len(json.dumps(said + end)) + 2000 < size:
            said += [
                {"role": "assistant", "content": _text(noise, 900)},
                {"role": "user", "content": _text(noise, 900)},
            ]
        asked = {"model": model, "stream": stream > 0, "max_tokens": stream or 200, "seed": pace}
        path.write_text(json.dumps(asked | {"messages": said + end}, separators=(",", ":")))
        before = json.dumps(asked | {"messages": said, "stream": False}, separators=(",", ":"))
        path.with_suffix(".before").write_text(before)
    return path


def _text(noise: random.Random, length: int) -> str:
    words = (noise.choice(_WORDS) if noise.random() < 0.8 else f"{noise.getrandbits(24):x}" for _ in range(length))
    return " ".join(words)[:length]


def load(folder: Path, server: Server, file: Path, *, connections: int, requests: int) -> Run:
    """Send ``requests`` (and some before that do not count); with the CPU each took, microseconds."""
    _sent(folder, server, file.with_suffix(".before"), (1, 1, 0))
    server.settle()
    warm = max(connections, requests // 8)
    before = server.cpu()
    run = _sent(folder, server, file, (connections, requests, warm))
    server.settle()
    run["cpu"] = (server.cpu() - before) / (requests + warm) * 1e6
    return run


def _sent(folder: Path, server: Server, file: Path, counts: tuple[int, int, int]) -> Run:
    done = subprocess.run(
        ["taskset", "-c", _LOAD_CORE, str(folder / "load"), str(server.port), _PATH, *map(str, counts), str(file),
         *server.headers],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{server.name}: {done.stderr}")
    run: Run = json.loads(done.stdout)
    if run["status"] or run["errors"]:
        raise SystemExit(f"{server.name}: {run['errors']} errors, status {run['status']}: {done.stderr[:1000]}")
    return run
