"""The store in trouble, a real daemon before it: the agent gets its answer, and the trouble is said once."""

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.disks import small_disk
from tests.fakes.provider import Provider, Turn

CHAT = "/v1/chat/completions"


TURNS = (Turn("An answer."),)


@contextmanager
def daemon_on(home: Home, provider: Provider) -> Iterator[RunningDaemon]:
    with running_daemon(home, provider.config()) as running:
        yield running


def asked(daemon: RunningDaemon, text: str = "hi", *, stream: bool = True) -> str:
    """The receipt of an answer that came whole."""
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}
    status, headers, raw = daemon.post(CHAT, body)
    assert (status, b"[DONE]" in raw if stream else b"An answer." in raw) == (200, True)
    return headers["x-reef-agent-record-id"]


def recording(daemon: RunningDaemon) -> tuple[str, str | None]:
    told = daemon.get("/reef/status")["recording"]
    return told["state"], told["detail"]


def said(daemon: RunningDaemon) -> int:
    return daemon.log().count("was answered but not recorded")


def kept(daemon: RunningDaemon, receipt: str) -> bool:
    return daemon.control("GET", f"/reef/records/{receipt}")[0] == 200


def test_a_database_that_somebody_else_holds(reef_home: Home, provider: Provider) -> None:
    with daemon_on(reef_home, provider) as daemon:
        assert kept(daemon, asked(daemon))
        with closing(sqlite3.connect(reef_home.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for stream in (True, False):
                asked(daemon, stream=stream)
            assert recording(daemon)[0] == "degraded"
            assert "lock" in str(recording(daemon)[1])
            assert said(daemon) == 1
            other.execute("ROLLBACK")
        assert kept(daemon, asked(daemon))
        assert recording(daemon) == ("on", None)
        assert daemon.log().count("recording works again") == 1


@pytest.fixture
def small_home() -> Iterator[Home]:
    with small_disk(Path(f"/tmp/reef-small-{os.getpid()}"), "24m") as place:  # short enough for a socket
        yield Home(place)


def test_a_disk_that_is_full(small_home: Home, provider: Provider) -> None:
    with daemon_on(small_home, provider) as daemon:
        assert kept(daemon, asked(daemon))
        filler = small_home.root / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        for number in range(3):
            asked(daemon, os.urandom(200_000).hex(), stream=bool(number % 2))
        state, detail = recording(daemon)
        assert (state, "full" in str(detail)) == ("degraded", True)
        filler.unlink()
        assert kept(daemon, asked(daemon))
        assert recording(daemon)[0] == "on"
        # What did not fit in the log either was lost, but the line that tells of it was not written twice.
        assert said(daemon) <= 1


def test_a_home_that_takes_no_more_writes(reef_home: Home, provider: Provider) -> None:
    """Every write fails, as on a disk that was mounted read-only; files stay open for reading."""
    with daemon_on(reef_home, provider) as daemon:
        before = asked(daemon)
        assert kept(daemon, before)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        lost = [asked(daemon, stream=stream) for stream in (True, False)]
        state, detail = recording(daemon)
        assert (state, str(reef_home.database) in str(detail)) == ("degraded", True)
        assert kept(daemon, before)
        told = subprocess.run(
            [sys.executable, "-m", "reef_cli.main", "status"], env={**os.environ, "REEF_HOME": str(reef_home.root)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "recording  degraded" in told.stdout
        assert "(2 not recorded)" in told.stdout
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert kept(daemon, asked(daemon))
        assert recording(daemon) == ("on", None)
        assert [kept(daemon, receipt) for receipt in lost] == [False, False]


def test_a_database_that_is_damaged_while_it_is_open(reef_home: Home, provider: Provider) -> None:
    with daemon_on(reef_home, provider) as daemon:
        receipt = asked(daemon)
        until(lambda: kept(daemon, receipt), "the first record")
        for file in (reef_home.database, reef_home.database.with_name("reef.db-wal")):
            with suppress(OSError), file.open("r+b") as damaged:
                damaged.write(os.urandom(file.stat().st_size))
        for _ in range(3):
            asked(daemon)
        assert recording(daemon)[0] == "degraded"
        assert said(daemon) <= 2
        assert daemon.control("GET", "/healthz")[0] == 200
