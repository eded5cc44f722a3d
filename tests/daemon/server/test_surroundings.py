"""What is odd about the machine, not about a request: a home that cannot be written, proxies, names, both loopbacks."""

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home, write_private
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon
from tests.fakes.disks import make_read_only, small_disk
from tests.fakes.provider import Provider, Turn, running_provider

CHAT = "/v1/chat/completions"
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider((Turn("An answer."),)) as running:
        yield running


def config(base_url: str) -> str:
    return f'server: {{port: 0}}\nengine: p\nengines: {{p: {{base_url: "{base_url}"}}}}\n'


@pytest.fixture
def own_disk() -> Iterator[Path]:
    with small_disk(Path(f"/tmp/reef-disk-{os.getpid()}"), "24m", lazy=True) as place:
        yield place


def test_a_home_that_cannot_be_written_is_told_and_nothing_hangs(own_disk: Path) -> None:
    home = Home(own_disk)
    home.prepare()
    write_private(home.config, config("http://127.0.0.1:1").encode())
    make_read_only(own_disk)
    done = subprocess.run(
        [sys.executable, "-m", "daemon.server"],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(own_disk)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.FAILED
    assert "Read-only file system" in done.stderr
    assert str(own_disk) in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@pytest.mark.parametrize("proxy", ["http", "socks5"])
def test_a_proxy_of_the_environment_never_gets_what_is_for_this_machine(
    reef_home: Home, provider: Provider, proxy: str
) -> None:
    """B111 and B114: neither the daemon's own probes nor a provider on loopback, with no NO_PROXY set."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        url = f"{proxy}://127.0.0.1:{trap.getsockname()[1]}"
        environment = {name: url for one in PROXIES for name in (one, one.upper())} | {"NO_PROXY": "", "no_proxy": ""}
        for host in ("127.0.0.1", "localhost"):
            base = provider.url.replace("127.0.0.1", host)
            with running_daemon(reef_home, config(f"{base}/v1"), environment=environment) as daemon:
                assert daemon.post(CHAT, ASK)[0] == 200
                status = subprocess.run(
                    [sys.executable, "-m", "reef_cli.main", "status"],
                    cwd=REPOSITORY,
                    env={**os.environ, **environment, "REEF_HOME": str(reef_home.root)},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert status.returncode == 0, status.stderr
        with pytest.raises(BlockingIOError):
            trap.accept()
    assert len(provider.requests) == 2


@pytest.fixture(scope="module")
def running(module_home: Home) -> Iterator[RunningDaemon]:
    with running_daemon(module_home) as daemon:
        yield daemon


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_every_name_of_this_machine_is_answered_at_once(running: RunningDaemon, host: str) -> None:
    """B116 and B117: where ``localhost`` means ::1 first, a daemon on 127.0.0.1 alone is refused, or costs seconds."""

    def seconds() -> float:
        started = time.monotonic()
        connection = HTTPConnection(host, running.port, timeout=10)
        connection.request("GET", "/v1/models", headers=running.headers())
        assert connection.getresponse().status == 200
        connection.close()
        return time.monotonic() - started

    assert min(seconds() for _ in range(5)) < 1.0


_MOVABLE_CLOCK = """
import os, time
def moved(read, unit):
    def now():
        try:
            with open(os.environ["MOVED_SECONDS"]) as file:
                return read() + int(file.read()) * unit
        except OSError:
            return read()
    return now
time.time, time.time_ns = moved(time.time, 1), moved(time.time_ns, 10**9)
"""


def test_a_clock_set_back_between_two_turns_changes_no_order_and_no_duration(
    reef_home: Home, provider: Provider, tmp_path: Path
) -> None:
    """BUGS B162: https://github.com/bitflicker64/Termstory/issues/49: jumps cut a session into many, with negative
    gaps. Here it jumps while an answer is waited for.
    """
    moved = tmp_path / "moved"
    moved.write_text("0")
    (tmp_path / "sitecustomize.py").write_text(_MOVABLE_CLOCK)
    environment = {"MOVED_SECONDS": str(moved), "PYTHONPATH": f"{tmp_path}:{REPOSITORY}"}
    said: list[dict[str, Any]] = []
    receipts: list[str] = []
    with running_daemon(reef_home, config(f"{provider.url}/v1"), environment=environment) as daemon:
        for turn, seconds in enumerate((0, -3600, -3600, 7200)):
            provider.reply = lambda asked, to=seconds: Turn("An answer." if moved.write_text(str(to)) else "")
            said.append({"role": "user", "content": f"turn {turn}"})
            status, headers, _ = daemon.post(CHAT, {"model": "m", "messages": said})
            assert status == 200
            said.append({"role": "assistant", "content": "An answer."})
            receipts.append(headers["x-reef-agent-record-id"])
            assert 0 <= daemon.get("/reef/status")["uptime_s"] < 600
        rows = daemon.get("/reef/records")["items"]
        (session,) = daemon.get("/reef/sessions")["items"]
        trace = daemon.get(f"/reef/traces/{session['id']}")
    starts = [row["started_ns"] for row in reversed(rows)]
    assert starts[2] < starts[0] - 3500 * 10**9, "the clock was set"
    assert [row["receipt"] for row in reversed(rows)] == receipts
    assert all(0 <= (row["first_byte_us"] or 0) <= row["duration_us"] < 600 * 10**6 for row in rows)
    assert (session["turns"], session["updated_ns"] >= session["created_ns"]) == (4, True)
    assert [one["record"]["receipt"] for one in trace["records"]] == receipts


def test_with_few_files_some_wait_some_are_told_to_come_back_and_the_log_stays_short(
    reef_home: Home, provider: Provider
) -> None:
    """``ulimit -n 64``: a request takes two, and asyncio used to say 2,000 times a second that there is none left."""
    provider.pace = 0.02
    body = json.dumps({**ASK, "stream": True}).encode()
    with running_daemon(reef_home, config(f"{provider.url}/v1")) as daemon:
        assert daemon.post(CHAT, {**ASK, "stream": True})[0] == 200  # all modules are loaded by then
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        head = f"POST {CHAT} HTTP/1.1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in (daemon.headers() | {"host": "localhost"}).items())
        asked = [socket.create_connection(("127.0.0.1", daemon.port), timeout=60) for _ in range(100)]
        for one in asked:
            one.sendall(head.encode() + b"\r\n" + body)
        answers = [_to_the_end(one) for one in asked]
        served = [answer for answer in answers if answer.startswith(b"HTTP/1.1 200 ")]
        told = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503 ")]
        assert [answer for answer in answers if answer not in (*served, *told)] == []
        assert len(served) > 5
        assert all(b"retry-after: " in answer and b"ulimit -n" in answer for answer in told)
        assert len(daemon.get("/reef/status")["engines"]) == 2
        rows = daemon.get("/reef/records?limit=200")["items"]
        assert len(rows) == 101
        assert sum(row["end"] == "ok" for row in rows) == len(served) + 1
        log = daemon.log()
    assert log.count("no file is left for another connection") == 1
    assert len(log.splitlines()) < 10, log


def _to_the_end(connection: socket.socket) -> bytes:
    with connection:
        said = b""
        while more := connection.recv(65536):
            said += more
    return said
