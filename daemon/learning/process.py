"""One child process of learning: started apart, heard line by line, and gone with all it started when it ends.

A recipe may be anybody's code: whatever it prints, forks or floods, it costs a bounded log, bounded memory, and no
process that stays. It sees none of this user's keys: only named variables of the environment are passed on.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from daemon.core.paths import Home, open_plain

#: The variable that names a job to whatever it starts, so that nothing of it can hide in a session of its own.
MARK: Final = "REEF_JOB"
_ROOT: Final = Path(__file__).parents[2]
_KEPT: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
                "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")  # fmt: skip
#: Ours, but no setting of ours: `engines.NAME.key` may name any variable.
_SECRET: Final = re.compile(r"REEF_.*(KEY|TOKEN|SECRET|PASSW|CREDENTIAL)", re.IGNORECASE)
_KEPT_PREFIXES: Final = ("LC_", "XDG_", "REEF_", "PIP_", "UV_", "CUDA_", "NVIDIA_", "OMP_", "MKL_")
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_LOG_MOST: Final = 1 << 20
_LINE_MOST: Final = 1 << 20
_SAID_MOST: Final = 64 << 20
#: From the polite signal to the other one.
_GRACE_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.2


def environment(home: Home, beside: Path | None) -> dict[str, str]:
    """What a child may know. ``beside``: the configuration's folder, whose modules it can import."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or (name.startswith(_KEPT_PREFIXES) and not _SECRET.match(name)) or name.lower() in _PROXIES
    }
    paths = [str(_ROOT), *([str(beside)] if beside else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**kept, "REEF_HOME": str(home.root), "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


class Broken(Exception):
    """The child said what no job says, or too much of it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """``code`` is negative for a signal; ``broken``: why it was stopped for what it said; ``late``: for its time."""

    code: int
    broken: str | None = None
    late: bool = False


class Child:
    """``heard`` gets each JSON object the child sends. One run a child."""

    def __init__(self, log: Path, heard: Callable[[dict[str, Any]], None]) -> None:
        self._log = log
        self._heard = heard
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def run(self, command: Sequence[str], environment: dict[str, str], folder: Path, *, until: float) -> Ended:
        """Start, listen until it ends, and see to it that nothing of it is left. ``until`` is a monotonic time."""
        if self._stopping:
            return Ended(-signal.SIGTERM)
        await asyncio.to_thread(_end_marked, environment.get(MARK, ""))  # what a killed daemon's child left behind
        process = self._process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE,  # its end tells the child that the daemon is gone
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LINE_MOST,
        )
        if self._stopping:  # meanwhile
            self._signal(signal.SIGKILL)
        said = asyncio.create_task(self._listen(process))
        logged = asyncio.create_task(self._keep_log(process))
        late = False
        try:
            # Not process.wait(): a child's child that holds the pipes open would keep it waiting.
            while process.returncode is None:
                done, _ = await asyncio.wait({said}, timeout=_POLL_SECONDS)
                late = time.monotonic() > until
                if late or (done and said.exception() is not None):
                    self._signal(signal.SIGKILL)
                if done:
                    await asyncio.sleep(_POLL_SECONDS / 10)
        finally:
            self._signal(signal.SIGKILL)  # whatever it started, too
            await asyncio.to_thread(_end_marked, environment.get(MARK, ""))
            await asyncio.wait({said, logged}, timeout=_GRACE_SECONDS)
            for task in (said, logged):
                task.cancel()
            process._transport.close()  # type: ignore[attr-defined]
        broken = None if said.cancelled() or not said.done() else said.exception()
        return Ended(process.returncode, None if broken is None else str(broken), late)

    async def stop(self) -> None:
        """Ask it to end, then end it."""
        self._stopping = True
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._alive() and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS / 10)
        self._signal(signal.SIGKILL)

    def _alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        total = 0
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                raise Broken(f"it sent a line of more than {_LINE_MOST >> 20} MiB") from None
            if not line:
                return
            total += len(line)
            if total > _SAID_MOST:
                raise Broken(f"it sent more than {_SAID_MOST >> 20} MiB of events")
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            if not isinstance(event, dict):
                raise TypeError
            self._heard(event)
        except (ValueError, TypeError, KeyError):
            raise Broken(f"it sent what is no event: {line[:80].decode(errors='replace')!r}") from None

    async def _keep_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(1 << 16):
            with contextlib.suppress(OSError):  # a full disk must not stop the job
                await asyncio.to_thread(_append, self._log, chunk)


def _end_marked(name: str) -> None:
    """Kill what carries the mark in its environment: processes that left the group. Linux only."""
    if not name:
        return
    wanted = f"{MARK}={name}".encode()
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in process.read_bytes().split(b"\0"):
                os.kill(int(process.parent.name), signal.SIGKILL)


def _append(log: Path, chunk: bytes) -> None:
    """Add to a log, of which the last part is kept."""
    if log.exists():
        open_plain(log).close()  # a job can reach it, too
    with log.open("ab+") as file:
        file.write(chunk)
        if file.tell() > _LOG_MOST:
            file.seek(-_LOG_MOST // 2, os.SEEK_END)
            rest = file.read()
            file.truncate(0)
            file.write(rest)


def last_lines(log: Path, count: int) -> list[str]:
    """The end of a log; empty when there is none."""
    try:
        with open_plain(log) as file:
            file.seek(-min(_LOG_MOST, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return file.read(_LOG_MOST).decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def module(name: str) -> list[str]:
    """The command that runs a module of ours. ``-P``: what lies in the working directory is no module."""
    return [sys.executable, "-P", "-m", name]
