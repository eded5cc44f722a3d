"""Finding the daemon: the state file it writes, and who holds a port.

The state file is a hint. Only the lock says that a daemon lives; only an answer on the socket says that it is ready.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from daemon.core.paths import Home, write_private


class DaemonState(NamedTuple):  # see Home: on the path of `reef status`
    """What a running daemon says of itself. ``url`` is the base for agents, without ``/v1``."""

    pid: int
    port: int
    socket: str
    version: str
    protocol: int
    started_ns: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def write_state(home: Home, state: DaemonState) -> None:
    write_private(home.state, json.dumps(state._asdict()).encode())


def read_state(home: Home) -> DaemonState | None:
    """The last state written, or None when there is none that can be read. The daemon may be gone."""
    try:
        return DaemonState(**json.loads(home.state.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def port_holder(port: int) -> str | None:
    """Who listens on a local TCP port, as ``name (pid N)``; None when that can't be told."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        if inodes & _open_files(process):
            name = (process / "comm").read_text(errors="replace").strip()
            return f"{name} (pid {process.name})"
    return None


def _open_files(process: Path) -> set[str]:
    """What a process has open, as far as this user may look and it still is."""
    found: set[str] = set()
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                found.add(str(link.readlink()))
    return found


def _listening_inodes(port: int) -> set[str]:
    """Socket inodes in LISTEN state on ``port``, from /proc/net/tcp and tcp6 (proc(5): state 0A, port in hex)."""
    found: set[str] = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            column = line.split()
            if column[3] == "0A" and int(column[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{column[9]}]")
    return found
