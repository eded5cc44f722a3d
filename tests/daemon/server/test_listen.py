"""Sockets and locks."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from daemon.core.config import DEFAULT_PORT, ServerConfig
from daemon.core.errors import ConfigError, Conflict
from daemon.core.paths import Home
from daemon.server.listen import agent_sockets, control_socket, only_daemon


def test_one_daemon_a_home(reef_home: Home) -> None:
    with only_daemon(reef_home), pytest.raises(Conflict, match="another daemon"), only_daemon(reef_home):
        pass


def test_a_lock_is_free_again_once_its_holder_is_gone(reef_home: Home) -> None:
    with only_daemon(reef_home):
        pass
    with only_daemon(reef_home):
        pass


def test_the_control_socket_is_private_and_replaces_a_stale_one(reef_home: Home) -> None:
    control_socket(reef_home.socket).close()
    with control_socket(reef_home.socket):
        mode = reef_home.socket.stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600


def test_only_loopback_is_listened_on() -> None:
    """B177: https://github.com/google/oss-fuzz/pull/14111."""
    _, listeners = agent_sockets(ServerConfig(port=0))
    try:
        assert {listener.getsockname()[0] for listener in listeners} <= {"127.0.0.1", "::1"}
    finally:
        for listener in listeners:
            listener.close()


async def test_what_is_written_goes_out_at_once() -> None:
    port, listeners = agent_sockets(ServerConfig(port=0))
    nagle_off: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def accepted(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection: socket.socket = writer.get_extra_info("socket")
        nagle_off.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    servers = [await asyncio.start_server(accepted, sock=listener) for listener in listeners]
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await nagle_off
    writer.close()
    for server in servers:
        server.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_any_other_address_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="this machine only"):
        agent_sockets(ServerConfig(host=host))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_taken_port_is_named_with_its_holder(host: str) -> None:
    """On either loopback, or on all addresses at once: else one of this machine's names leads to the other program."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as other:
        other.bind((host, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Conflict) as caught:
            agent_sockets(ServerConfig(port=port))
    assert f"port {port} is taken by " in caught.value.message
    assert str(os.getpid()) in caught.value.message


def test_the_default_port_moves_to_the_next_free_one() -> None:
    first, mine = agent_sockets(ServerConfig())
    second, more = agent_sockets(ServerConfig())
    for listener in (*mine, *more):
        listener.close()
    assert DEFAULT_PORT <= first < second


def test_a_long_home_still_has_a_short_socket_path(tmp_path: Path) -> None:
    home = Home(tmp_path / ("x" * 90) / ("y" * 90))
    home.prepare()
    with control_socket(home.socket):
        assert len(os.fsencode(home.socket)) < 104
    home.socket.unlink()
    home.socket.parent.rmdir()
