"""The state file and who holds a port."""

import os
import socket
from pathlib import Path

import pytest

from daemon.core.discovery import DaemonState, port_holder, read_state, write_state
from daemon.core.paths import Home

STATE = DaemonState(pid=1, port=8911, socket="/x/reef.sock", version="0.1.0", protocol=1, started_ns=7)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    place = Home(tmp_path / "home")
    place.prepare()
    return place


def test_a_state_comes_back(place: Home) -> None:
    write_state(place, STATE)
    assert read_state(place) == STATE
    assert STATE.url == "http://127.0.0.1:8911"
    assert place.state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"pid": 1}', b'{"new": 1}', b"\xff\xfe"])
def test_a_state_that_cannot_be_read_is_none(place: Home, content: bytes) -> None:
    place.state.write_bytes(content)
    assert read_state(place) is None


def test_no_state_is_none(place: Home) -> None:
    assert read_state(place) is None


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_holder_of_a_port_is_named(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"no {address} here")
        port = server.getsockname()[1]
        assert port_holder(port) is None
        server.listen()
        assert (port_holder(port) or "").endswith(f"(pid {os.getpid()})")
