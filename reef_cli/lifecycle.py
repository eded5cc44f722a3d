"""The daemon's life as the CLI sees it: is it there, start it, stop it, replace one of another version.

Only the daemon's lock says that one lives; only an answer on the socket says that it is ready. State, socket and lock
files that a killed daemon leaves behind are harmless. Starting happens under its own lock: any number of callers at
once start one daemon.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from daemon.core.client import Client
from daemon.core.errors import Unreachable
from daemon.core.locks import is_locked, open_lock, try_lock
from daemon.core.paths import START_LOCK, Home
from daemon.core.version import PROTOCOL, __version__
from reef_cli import diagnostics

if TYPE_CHECKING:
    import subprocess

#: How a daemon is run; ``--foreground`` and ``--config PATH`` may follow.
DAEMON: Final = (sys.executable, "-m", "daemon.server")
START_SECONDS: Final = 60.0
#: A daemon that listens answers a liveness probe in a millisecond; this long means that it hangs.
PROBE_SECONDS = 5.0
DRAIN_SECONDS: Final = 30.0
#: Between two steps of a daemon's start or end.
_SETTLE_SECONDS: Final = 2.0
_TAIL_LINES: Final = 15


class Health(NamedTuple):
    version: str
    protocol: int
    pid: int


class Down(NamedTuple):
    """Why nothing answers. ``since_ns``: the last sign of life, wall clock; None where there never was one."""

    reason: str
    since_ns: int | None
    pid: int | None


def probe(home: Home) -> Health | None:
    """Who answers on the socket; None when nobody listens. Raises Unreachable when it listens but stays silent."""
    if not home.socket.exists():
        return None
    try:
        told = Client(home.socket, timeout=PROBE_SECONDS).get("/healthz")
    except Unreachable as error:
        if isinstance(error.__cause__, FileNotFoundError | ConnectionError):  # also one that was killed just now
            return None
        raise
    return Health(str(told["version"]), int(told["protocol"]), int(told["pid"]))


def ensure_daemon(home: Home, command: Sequence[str] = DAEMON) -> Client:
    """A daemon of this version that answers, started if need be."""
    if not _ours(_calm_probe(home)):
        home.prepare()
        with _locked(home.start_lock) as lock:
            health = _calm_probe(home)
            if health is not None and not _ours(health):
                check_config(home)
                diagnostics.say(f"replacing the daemon {health.version} (pid {health.pid}) by {__version__}")
                stop_daemon(home)
                health = None
            if health is None:
                _refuse_to_start_beside(home)
                _start(home, command, lock)
    client = Client(home.socket)
    send_waiting(home, client)
    return client


def send_waiting(home: Home, client: Client) -> None:
    """What was said while no daemon answered."""
    if waiting(home):
        from reef_cli.outbox import deliver  # not at import: most commands find nothing there

        deliver(home, client)


def waiting(home: Home) -> int:
    """How much feedback waits in the outbox, in key presses."""
    try:
        return sum(name.endswith(".json") for name in os.listdir(home.outbox))  # noqa: PTH208 - a hot command's
    except OSError:
        return 0


def check_config(home: Home) -> None:
    """Before a daemon is stopped for the next one: raises ConfigError where that one could not start."""
    from daemon.core.config import load  # not at import: YAML is no hot command's

    if home.config.exists():
        load(home.config)


def answers_soon(home: Home, seconds: float) -> bool:
    """Whether a daemon that somebody else started answers within that time."""
    return _until(lambda: probe(home) is not None, seconds)


def stop_daemon(home: Home, *, drain: float = DRAIN_SECONDS) -> bool:
    """Let the daemon finish what is in flight, at most ``drain`` seconds, and end. False when none was there."""
    if probe(home) is None:
        return False
    Client(home.socket).post("/reef/shutdown", {"drain_seconds": drain})
    if not _until(lambda: not lives(home), drain + 10):
        raise Unreachable(f"the daemon still runs {drain + 10:.0f} s after it was told to stop", hint=_kill_hint(home))
    return True


def lives(home: Home) -> bool:
    """Whether some process holds the daemon's lock."""
    return is_locked(home.lock)


def down(home: Home) -> Down:
    """Why there is no daemon, from what the last one left."""
    from daemon.core.discovery import read_state

    state = read_state(home)
    try:
        since: int | None = home.log.stat().st_mtime_ns
    except OSError:
        since = None
    pid = state.pid if state else None
    if lives(home):
        return Down("it is starting, or no longer answers", since, pid)
    if state is not None:  # a daemon that ends in order takes its state file away
        return Down(f"it was killed (pid {pid})", since, pid)
    return Down("it was stopped" if since else "never started", since, None)


def _ours(health: Health | None) -> bool:
    return health is not None and health.version == __version__ and health.protocol == PROTOCOL


def _calm_probe(home: Home) -> Health | None:
    try:
        return probe(home)
    except Unreachable as error:
        raise Unreachable(error.message, hint=_kill_hint(home)) from error


def _kill_hint(home: Home) -> str:
    from daemon.core.discovery import read_state

    state = read_state(home)
    return f"kill {state.pid}; reef logs tells what it was doing" if state else "reef logs"


def _refuse_to_start_beside(home: Home) -> None:
    """Raises Unreachable where a daemon lives that nobody can reach: somebody removed its socket. One that is starting
    or ending has no state file.
    """
    from daemon.core.discovery import read_state

    def settled() -> bool:
        return home.socket.exists() or not lives(home) or read_state(home) is None

    if not _until(settled, _SETTLE_SECONDS):
        raise Unreachable("the daemon runs, but its socket is gone", hint=_kill_hint(home))


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold a lock file; whoever holds it before us is starting the same daemon, so wait as long as a start may take."""
    handle = open_lock(path)
    try:
        if not _until(lambda: try_lock(handle), START_SECONDS + DRAIN_SECONDS):
            raise Unreachable("another reef has been starting the daemon for too long", hint="reef doctor")
        yield handle
    finally:
        os.close(handle)


def _start(home: Home, command: Sequence[str], lock: int) -> None:
    """Spawn a daemon and wait until it answers. It outlives us: own session, no terminal, nothing of ours held but the
    start's lock: if we are killed, nobody starts a second one before the first has started or failed.
    """
    import subprocess

    log = os.open(home.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        before = os.fstat(log).st_size
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, **_findable(), "REEF_HOME": str(home.root), START_LOCK: str(lock)},
            pass_fds=(lock,),
            start_new_session=True,
            umask=0o077,
        )
    finally:
        os.close(log)
    try:
        _until_ready(home, child, before)
    finally:
        child.returncode = 0  # it is not ours to wait for: no warning when this object goes


def _findable() -> dict[str, str]:
    """Python finds us first: in a clone, which a wrapper knows by its path alone, and before what else a person's path
    calls ``daemon`` (python-daemon does)."""
    paths = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _until_ready(home: Home, child: "subprocess.Popen[bytes]", log_start: int) -> None:
    def settled() -> bool:
        # The child may end because another daemon was first; that one then answers.
        return probe(home) is not None or (child.poll() is not None and not lives(home))

    if _until(settled, START_SECONDS) and probe(home) is not None:
        return
    code = child.poll()
    for line in _tail(home.log, log_start):
        diagnostics.say(f"  {line}")
    what = f"exit code {code}" if code is not None else f"no answer within {START_SECONDS:.0f} s"
    raise Unreachable(f"the daemon did not start: {what}", hint="reef doctor")


def _tail(path: Path, start: int) -> list[str]:
    """The last lines that were written after byte ``start``."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    fresh = data[start:] if len(data) >= start else data  # shorter: it was rotated meanwhile
    return fresh.decode(errors="replace").splitlines()[-_TAIL_LINES:]


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    """Ask until it is so, ever less often; False when the time is up."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)
    return True
