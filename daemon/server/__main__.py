"""``python -m daemon.server``: run the daemon of this home until it is told to stop."""

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

from daemon.core.config import Config, load
from daemon.core.discovery import DaemonState, write_state
from daemon.core.errors import ExitCode, ReefError
from daemon.core.paths import START_LOCK, Home, home
from daemon.core.version import PROTOCOL, __version__
from daemon.server.app import build
from daemon.server.auth import Tokens
from daemon.server.listen import BACKLOG, agent_sockets, allow_many_connections, control_socket, only_daemon
from daemon.server.log import start_logging
from daemon.server.protocol import Connection
from daemon.server.runtime import Runtime, running

_log = logging.getLogger("reef.server")

#: How long a thread that computes may keep the event loop from its turn: what it reads may be megabytes.
_TURN_SECONDS: Final = 0.001


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m daemon.server", description="Run Reef's daemon.")
    parser.add_argument(
        "--config", type=Path, help="configuration file (default: config.yaml in Reef's home, if there)"
    )
    parser.add_argument("--foreground", action="store_true", help="also log to stderr")
    options = parser.parse_args()
    os.umask(0o077)
    sys.setswitchinterval(_TURN_SECONDS)
    allow_many_connections()
    place = home()
    try:
        place.prepare()
        path = options.config or (place.config if place.config.exists() else None)
        config = load(path) if path else Config()
        tokens = Tokens.load(place)
        with only_daemon(place):
            start_logging(place.log, secrets=(tokens.agent, tokens.control), foreground=options.foreground)
            with asyncio.Runner() as runner:
                runner.run(_serve(place, config, path, tokens))
    except ReefError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    except OSError as error:  # a full disk, a file where a folder should be
        print(f"error: {error.strerror or error}: {error.filename or place.root}", file=sys.stderr)
        print("  hint: reef doctor", file=sys.stderr)
        return int(ExitCode.FAILED)
    return 0


class _Server(uvicorn.Server):
    """uvicorn, told to end the event streams before it waits for connections to close."""

    def __init__(self, runtime: Runtime, drain_seconds: float) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        super().__init__(
            uvicorn.Config(
                build(runtime),
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,  # a request line may hold a token; records say more
                server_header=False,
                date_header=False,  # `daemon.server.protocol.dated`: a provider's answer brings its own
                proxy_headers=False,  # nobody stands between an agent and its machine
                backlog=BACKLOG,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=int(drain_seconds),
            )
        )

    def stop(self, drain_seconds: float | None) -> None:
        """Take no new connection, finish what runs (at most that long), then return from `serve`."""
        if drain_seconds is not None:
            self.config.timeout_graceful_shutdown = int(drain_seconds)
        self._runtime.stopping.set()
        self._runtime.changes.raise_one()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not uvicorn's own: it raises the signal again after serving, and nothing after that is cleaned up.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self._loop.call_soon_threadsafe(self.stop, None)


async def _serve(place: Home, config: Config, config_path: Path | None, tokens: Tokens) -> None:
    port, listeners = agent_sockets(config.server)
    async with running(place, config, config_path=config_path, tokens=tokens, port=port) as runtime:
        server = _Server(runtime, config.server.drain_seconds)
        runtime.stop = server.stop
        listeners.append(control_socket(place.socket))
        write_state(place, DaemonState(os.getpid(), port, str(place.socket), __version__, PROTOCOL, time.time_ns()))
        _started(place)
        _log.info("reef %s serves %s on port %d", __version__, place.root, port)
        try:
            await server.serve(sockets=listeners)
        finally:
            # A state file without a daemon means that one was killed: `reef status` says so.
            for left in (place.socket, place.state):
                left.unlink(missing_ok=True)
            _log.info("stopped")


def _started(place: Home) -> None:
    """Let go of the lock that kept others from starting a second daemon meanwhile."""
    with suppress(OSError, ValueError):
        handle = int(os.environ.pop(START_LOCK, ""))
        if os.path.samestat(os.fstat(handle), place.start_lock.stat()):
            os.close(handle)


if __name__ == "__main__":
    sys.exit(main())
