"""kill -9 at random moments: whoever saw the end of a response finds its record, and the next call brings the
daemon back.
"""

import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from daemon.core.discovery import read_state
from daemon.core.errors import ReefError
from daemon.core.paths import Home
from daemon.store.db import Store
from reef_cli.lifecycle import ensure_daemon, stop_daemon
from tests.fakes.provider import running_provider

pytestmark = [pytest.mark.engine, pytest.mark.slow]

KILLS = 200
CLIENTS = 4
CHAT = "/v1/chat/completions"


@dataclass
class Load:
    """Clients that go on whatever happens; ``ended`` are the receipts of responses seen to their very end."""

    home: Home
    done: threading.Event = field(default_factory=threading.Event)
    ended: list[str] = field(default_factory=list)
    broken: int = 0
    unexpected: list[str] = field(default_factory=list)

    def client(self, number: int) -> None:
        turn = 0
        while not self.done.is_set():
            turn += 1
            local = number % 2 == 0
            body = {
                "model": "inside" if local else "outside",
                "messages": [{"role": "user", "content": f"client {number} turn {turn}"}],
                "max_tokens": 12,
                "stream": turn % 3 != 0,
            }
            try:
                self._exchange(body)
            except (OSError, HTTPException):
                self.broken += 1
                with suppress(ReefError):
                    ensure_daemon(self.home)  # what every command and wrapper does

    def _exchange(self, body: dict[str, Any]) -> None:
        state = read_state(self.home)
        if state is None:
            raise ConnectionError("no daemon")
        connection = HTTPConnection("127.0.0.1", state.port, timeout=60)
        try:
            token = self.home.agent_token.read_text()
            headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
            connection.request("POST", CHAT, json.dumps(body), headers)
            response = connection.getresponse()
            raw = response.read()  # raises IncompleteRead unless the end was seen
            receipt = response.getheader("x-reef-agent-record-id")
            if response.status not in (200, 502, 503):
                self.unexpected.append(f"{response.status} {raw[:200]!r}")
            elif receipt:
                self.ended.append(receipt)
        finally:
            connection.close()


@contextmanager
def under_load(home: Home) -> Iterator[Load]:
    load = Load(home)
    threads = [threading.Thread(target=load.client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.done.set()
        for thread in threads:
            thread.join(90)


def worker_of(daemon: int) -> int | None:
    """The engine's process: the daemon's child."""
    with suppress(OSError):
        children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
        return int(children[0]) if children else None
    return None


def victim(home: Home, chance: random.Random) -> tuple[str, int] | None:
    """The daemon or its engine, as chance has it; an engine is only there once a request has loaded it."""
    state = read_state(home)
    if state is None:
        return None
    worker = worker_of(state.pid) if chance.random() < 0.8 else None
    return ("daemon", state.pid) if worker is None else ("engine", worker)


def test_200_kills_lose_no_record_that_a_client_relies_on(reef_home: Home, model_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    with running_provider() as provider:
        reef_home.prepare()
        reef_home.config.write_text(
            f"""
server: {{port: {_free_port()}}}
engines: {{p: {{base_url: "{provider.url}/v1"}}}}
models: {{outside: p}}
"""
        )
        client = ensure_daemon(reef_home)
        assert '"model"' in json.dumps(list(client.lines("/reef/models", {"source": str(model_path), "use": True}))[-1])
        killed = {"daemon": 0, "engine": 0}
        with under_load(reef_home) as load:
            while sum(killed.values()) < KILLS:
                time.sleep(chance.random() * 0.6)
                if (chosen := victim(reef_home, chance)) is not None:
                    with suppress(ProcessLookupError):
                        os.kill(chosen[1], signal.SIGKILL)
                        killed[chosen[0]] += 1
        ensure_daemon(reef_home)
        stop_daemon(reef_home)
    store = Store.open(reef_home.database)
    try:
        missing = [receipt for receipt in load.ended if not _kept(store, receipt)]
        assert store.verify() == []
    finally:
        store.close()
    print(f"seed {seed}: killed {killed}, {len(load.ended)} ends seen, {load.broken} broken, {len(missing)} missing")
    assert missing == []
    assert load.unexpected == []
    assert len(load.ended) > KILLS
    assert min(killed.values()) >= KILLS // 20


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
