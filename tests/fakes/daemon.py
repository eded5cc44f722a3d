"""A real daemon of its own home and port, run the way the command line runs it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from daemon.core.discovery import read_state
from daemon.core.paths import Home, write_private

REPOSITORY = Path(__file__).parents[2]
#: A job gives way to everything else on the machine, the other tests included.
_PATIENCE_SECONDS = 600.0


class _SocketConnection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE_SECONDS)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_PATIENCE_SECONDS)
        self.sock.connect(self._path)


@dataclass
class RunningDaemon:
    """``control`` talks over the socket, ``post`` as an agent does."""

    home: Home
    process: subprocess.Popen[bytes]
    port: int = 0
    _connections: list[HTTPConnection] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def agent_token(self) -> str:
        return self.home.agent_token.read_text()

    @property
    def control_token(self) -> str:
        return self.home.control_token.read_text()

    def control(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """One request on the control socket; returns status and decoded JSON."""
        connection = _SocketConnection(self.home.socket)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json"})
            response = connection.getresponse()
            raw = response.read()
            is_json = response.getheader("content-type") == "application/json"
            return response.status, json.loads(raw) if is_json else raw
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """A control GET that must succeed."""
        status, data = self.control("GET", path)
        assert status == 200, data
        return data

    def headers(self) -> dict[str, str]:
        """What an agent sends with every request."""
        return {"content-type": "application/json", "authorization": f"Bearer {self.agent_token}"}

    def connect(self) -> HTTPConnection:
        """A connection of an agent's; closed at the end."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)
        self._connections.append(connection)
        return connection

    def open(
        self, path: str, body: bytes | object, *, headers: dict[str, str] | None = None, method: str = "POST"
    ) -> HTTPResponse:
        """One request over TCP with the agent's token; the response is open for reading."""
        return self._asked(self.connect(), path, body, method=method, headers=headers or {})

    def post(self, path: str, body: bytes | object, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """One request over TCP, read to its end. Keyword ``x_reef_scenario`` becomes header ``x-reef-scenario``."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)) as connection:
            response = self._asked(connection, path, body, method="POST", headers=given)
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()

    def _asked(
        self, connection: HTTPConnection, path: str, body: bytes | object, *, method: str, headers: dict[str, str]
    ) -> HTTPResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, self.headers() | headers)
        return connection.getresponse()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(_PATIENCE_SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def stop(self) -> None:
        for connection in self._connections:
            connection.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()

    def log(self) -> str:
        return self.home.log.read_text() if self.home.log.exists() else ""


def start(home: Home, config: str | None = None, *, environment: dict[str, str] | None = None) -> RunningDaemon:
    """Start a daemon on ``home`` and wait until it answers. ``config`` is YAML; without one, any free port is used."""
    home.prepare()
    write_private(home.config, (config if config is not None else "server: {port: 0}\n").encode())
    process = subprocess.Popen(
        [sys.executable, "-m", "daemon.server"],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(home.root), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    daemon = RunningDaemon(home, process)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            assert process.stderr is not None
            raise RuntimeError(f"the daemon exited with {process.returncode}: {process.stderr.read().decode()}")
        state = read_state(home)
        if state is not None and state.pid == process.pid:
            daemon.port = state.port
            try:
                daemon.control("GET", "/healthz")
            except OSError:
                pass
            else:
                return daemon
        time.sleep(0.02)
    daemon.stop()
    raise RuntimeError(f"the daemon did not answer in time; its log: {daemon.log()}")


@contextmanager
def running_daemon(
    home: Home, config: str | None = None, *, environment: dict[str, str] | None = None
) -> Iterator[RunningDaemon]:
    """`start`, and stop at the end whatever happened."""
    daemon = start(home, config, environment=environment)
    try:
        yield daemon
    finally:
        daemon.stop()


def until(condition: Any, what: str, seconds: float = _PATIENCE_SECONDS) -> Any:
    """Wait until ``condition()`` is truthy and return it; fail saying ``what`` did not happen."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen in {seconds} s")
        time.sleep(0.01)
    return found
