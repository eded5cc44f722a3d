"""kill -9 at random moments of the daemon, its engine, a client and the provider, under mixed load.

Whoever saw the end of a response finds its record; no record is torn; the next call brings the daemon back; nothing is
left behind. 100 kills as a rule, 1,000 with REEF_TEST_SOAK=1.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.core.discovery import read_state
from daemon.core.errors import ReefError
from daemon.core.paths import Home
from daemon.store.db import Store
from reef_cli.lifecycle import ensure_daemon, stop_daemon
from tests.conftest import ROOT
from tests.fakes.provider import until

pytestmark = [pytest.mark.engine, pytest.mark.slow]

KILLS = 1000 if os.environ.get("REEF_TEST_SOAK") else 100
CLIENTS = 4
#: How often each is chosen, of ten.
SHARES = ("daemon",) * 3 + ("engine",) * 3 + ("client",) * 2 + ("provider",) * 2


@dataclass
class Load:
    """Processes of both ends, and who is killed. ``ends`` is what the clients saw to the very end, a file each."""

    home: Home
    folder: Path
    port: int
    chance: random.Random
    clients: list[subprocess.Popen[bytes]] = field(default_factory=list)
    provider: subprocess.Popen[bytes] | None = None
    killed: Counter[str] = field(default_factory=Counter)

    def start(self) -> None:
        self.provider = self._run("provider", str(self.port))
        self.clients = [self._client(number) for number in range(CLIENTS)]

    def _client(self, number: int) -> subprocess.Popen[bytes]:
        ends = str(self.folder / f"ends-{number}")
        return self._run("client", str(self.home.root), ends, str(self.chance.randrange(1 << 32)))

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "REEF_HOME": str(self.home.root)}
        command = [sys.executable, "-m", "tests.fakes.load", *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE)

    def kill_one(self) -> None:
        """The victim as chance has it; an end is replaced at once, a daemon by whoever calls it next."""
        chosen = self.chance.choice(SHARES)
        if chosen == "client":
            number = self.chance.randrange(CLIENTS)
            _kill(self.clients[number])
            self.clients[number] = self._client(number)
        elif chosen == "provider":
            assert self.provider is not None
            _kill(self.provider)
            self.provider = self._run("provider", str(self.port))
        else:
            state = read_state(self.home)
            pid = None if state is None else state.pid if chosen == "daemon" else worker_of(state.pid)
            if pid is None:  # not there just now
                return
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.killed[chosen] += 1

    def is_enough(self) -> bool:
        """All kills, some of each kind, and answers between them: on a busy machine the engine is seldom there."""
        rarest = min(self.killed[one] for one in set(SHARES))
        return self.killed.total() >= KILLS and rarest >= KILLS // 25 and len(self.ends()) > KILLS // 4

    def stop(self) -> None:
        for process in (*self.clients, *filter(None, [self.provider])):
            _kill(process)

    def ends(self) -> list[str]:
        return [line for file in self.folder.glob("ends-*") for line in file.read_text().split("\n") if line]


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()


def worker_of(daemon: int) -> int | None:
    """The engine's process: the daemon's child."""
    with suppress(OSError):
        children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
        return int(children[0]) if children else None
    return None


def left_behind(home: Home) -> list[str]:
    """Processes of this home's, whoever started them."""
    mark = f"REEF_HOME={home.root}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes() + b"\0" and int(process.name) != os.getpid():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def test_kills_lose_no_record_that_a_client_relies_on(reef_home: Home, model_path: Path, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    load = Load(reef_home, tmp_path, _free_port(), random.Random(seed))
    _prepare(reef_home, load.port, model_path)
    load.start()
    try:
        until(lambda: len(load.ends()) > CLIENTS, "the first answers", 300)
        enough = time.monotonic() + 20 * KILLS
        while not load.is_enough():
            assert time.monotonic() < enough, (dict(load.killed), len(load.ends()))
            time.sleep(load.chance.random() * 0.6)
            load.kill_one()
    finally:
        load.stop()
    ensure_daemon(reef_home)
    stop_daemon(reef_home)
    ends = load.ends()
    store = Store.open(reef_home.database)
    try:
        missing = [receipt for receipt in ends if receipt.startswith("rec_") and not _kept(store, receipt)]
        torn = store.verify()
    finally:
        store.close()
    print(f"seed {seed}: killed {dict(load.killed)}, {len(ends)} ends seen, {len(missing)} missing, {len(torn)} torn")
    assert [line for line in ends if not line.startswith("rec_")] == []
    assert (missing, torn) == ([], [])
    with suppress(AssertionError):
        until(lambda: not left_behind(reef_home), "nothing is left behind", 120)
    assert left_behind(reef_home) == []


def _prepare(home: Home, port: int, model_path: Path) -> None:
    home.prepare()
    url = f"http://127.0.0.1:{port}/v1"
    home.config.write_text(
        f"""
server: {{port: {_free_port()}}}
engines:
  all: {{base_url: "{url}", dialects: [chat, messages, responses]}}
  chat: {{base_url: "{url}", dialects: chat}}
models: {{outside: all, translated: chat}}
"""
    )
    lines = list(ensure_daemon(home).lines("/reef/models", {"source": str(model_path), "use": True}))
    assert '"model"' in json.dumps(lines[-1])


def _kept(store: Store, receipt: str) -> bool:
    try:
        return store.record(receipt).receipt == receipt
    except ReefError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
