"""Sockets and locks: one daemon a home, loopback only, a control socket that only its owner can open.

uvicorn makes its own Unix socket world-writable, so both kinds are bound here and handed over.
"""

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daemon.core.config import DEFAULT_PORT, ServerConfig, loopback_only
from daemon.core.discovery import port_holder
from daemon.core.errors import Conflict
from daemon.core.locks import open_lock, try_lock
from daemon.core.paths import Home

_PORTS_TRIED = 100
#: What macOS allows too.
_FILES = 10_240
#: Connections that the kernel keeps while all files are open; asyncio asks so often in vain before it pauses a second.
BACKLOG = 512


@contextmanager
def only_daemon(home: Home) -> Iterator[None]:
    """Hold the home's daemon lock. Raises Conflict when another daemon has it; a dead one's lock is free by itself."""
    handle = open_lock(home.lock)
    try:
        if not try_lock(handle):
            raise Conflict(
                f"another daemon is running on {home.root}",
                hint="reef stop, then this again; or another REEF_HOME for one beside it",
            )
        yield
    finally:
        os.close(handle)


def allow_many_connections() -> None:
    """Raise this process's limit on open files: shells give 256 to 1024, and a leaking agent uses those up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def control_socket(path: Path) -> socket.socket:
    """A listening Unix socket of mode 0600. Only the holder of the daemon lock may call this: it replaces a stale
    one.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def agent_sockets(config: ServerConfig) -> tuple[int, list[socket.socket]]:
    """Listening sockets on 127.0.0.1 and, where the machine has it, ::1, on one port; and that port.

    A port set in the configuration is taken or refused; the default moves to the next free one. Raises ConfigError for
    a host that is not this machine's loopback, Conflict (naming who holds the port) when it is taken.
    """
    loopback_only(config.host)
    if config.port is not None:
        return _on_port(config.port)
    for port in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED):
        with suppress(Conflict):
            return _on_port(port)
    raise Conflict(f"no free port from {DEFAULT_PORT} to {DEFAULT_PORT + _PORTS_TRIED - 1}", hint="set server.port")


def _on_port(port: int) -> tuple[int, list[socket.socket]]:
    four = _listen(socket.AF_INET, "127.0.0.1", port)
    port = four.getsockname()[1]
    try:
        six = [_listen(socket.AF_INET6, "::1", port)] if socket.has_ipv6 else []
    except Conflict:
        four.close()
        raise
    except OSError:
        six = []  # the kernel knows IPv6, this machine has no ::1
    return port, [four, *six]


def _listen(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # The protocol by name: where it is 0, asyncio leaves Nagle's algorithm on, and a second packet waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno in (98, 48):  # EADDRINUSE on Linux, on macOS
            holder = port_holder(port)
            raise Conflict(
                f"port {port} is taken" + (f" by {holder}" if holder else ""),
                hint="set server.port in the configuration, or stop that program",
            ) from None
        raise
    return listener
