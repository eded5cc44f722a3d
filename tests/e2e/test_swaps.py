"""Weights change under live traffic: nobody's request fails, and each record names the weights that made its answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.engines.base import LoraFile
from daemon.store.db import Store
from tests.e2e.conftest import add_model
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.lora import peft_directory
from tests.fakes.reader import Reader

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SWAPS = 100
STREAMS = 8
CHECKED = 12
SCENARIO = "swaps"

RECIPE = '''
from dataclasses import dataclass
from pathlib import Path

from daemon.core.learning import Batch
from recipes.base import Context, Proposal, Recipe, Signal, Stream, Target
from recipes.lora.convert import convert


class Given(Recipe):
    """Weights that somebody has: nothing is learned."""

    name = "given"
    summary = "weights from a PEFT directory"
    signals = (Signal.INSTRUCTION,)
    target = Target.WEIGHTS

    @dataclass(frozen=True)
    class Config:
        peft: str = ""

    def select(self, stream: Stream) -> Batch | None:
        return Batch(instructions=tuple(stream.instructions()[:1]))

    def grow(self, batch: Batch, context: Context) -> Proposal:
        model, _ = context.base_model()
        lora = context.directory / "given.gguf"
        convert(Path(self.config.peft), model, lora)
        return Proposal(f"weights of {Path(self.config.peft).name}", lora=lora, peft=Path(self.config.peft))
'''


@dataclass
class Clients:
    """Streams that go on until told to stop."""

    daemon: RunningDaemon
    done: threading.Event = field(default_factory=threading.Event)
    receipts: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def run(self, number: int) -> None:
        turn = 0
        while not self.done.is_set():
            turn += 1
            body = {
                "model": "default",
                "stream": True,
                "max_tokens": 8,
                "temperature": 0,
                "messages": [{"role": "user", "content": f"client {number}, turn {turn}: what is the sea?"}],
            }
            try:
                response = self.daemon.open("/v1/chat/completions", body, headers={"x-reef-scenario": SCENARIO})
                raw = response.read()
            except (OSError, HTTPException) as error:
                self.failed.append(repr(error))
                continue
            if response.status != 200 or b"[DONE]" not in raw or b'"error"' in raw:
                self.failed.append(f"{response.status} {raw[-200:]!r}")
            self.receipts.append(response.getheader("x-reef-agent-record-id") or "")


@contextmanager
def traffic(daemon: RunningDaemon) -> Iterator[Clients]:
    clients = Clients(daemon)
    threads = [threading.Thread(target=clients.run, args=(number,)) for number in range(STREAMS)]
    for thread in threads:
        thread.start()
    try:
        yield clients
    finally:
        clients.done.set()
        for thread in threads:
            thread.join(120)


def released(daemon: RunningDaemon, peft: Path) -> dict[str, Any]:
    """A person releases weights that nothing proves (there are no tasks): unproven, but signed like every release."""
    job = call(
        daemon, "/reef/jobs", {"recipe": "given_recipe:Given", "scenario": SCENARIO, "config": {"peft": str(peft)}}
    )
    ended = until(lambda: over(daemon, job["id"]), f"the end of {job['id']}")
    assert ended["state"] == "done", ended
    assert ended["outcome"] == "inconclusive", ended
    release = call(daemon, f"/reef/releases/{ended['release_id']}/approve", {"scenario": SCENARIO, "force": True})
    assert release["kind"] == "unproven"
    return release


def over(daemon: RunningDaemon, job: str) -> dict[str, Any] | None:
    row: dict[str, Any] = daemon.get(f"/reef/jobs/{job}")
    return row if row["state"] in ("done", "failed", "cancelled") else None


def call(daemon: RunningDaemon, path: str, body: dict[str, Any]) -> dict[str, Any]:
    status, data = daemon.control("POST", path, body)
    assert status in (200, 201, 202), data
    found: dict[str, Any] = data
    return found


def test_100_swaps_and_rollbacks_under_8_streams(reef_home: Home, model_path: Path, tmp_path: Path) -> None:
    adapters = [peft_directory(tmp_path / f"weights-{seed}", seed=seed, scale=0.3) for seed in (1, 2)]
    reef_home.prepare()
    (reef_home.root / "given_recipe.py").write_text(RECIPE)
    with running_daemon(reef_home) as daemon:
        add_model(daemon, model_path)
        releases = [released(daemon, peft) for peft in adapters]
        with traffic(daemon) as clients:
            until(lambda: len(clients.receipts) >= STREAMS, "the first answers")
            for number in range(SWAPS):
                to = releases[number % 2]["id"]
                rolled = call(daemon, "/reef/releases/rollback", {"scenario": SCENARIO, "to": to})
                assert (rolled["kind"], rolled["restores"]) == ("rollback", to)
                asked = len(clients.receipts)
                until(lambda seen=asked: len(clients.receipts) > seen, "an answer after the swap")
        chain = daemon.get(f"/reef/releases?scenario={SCENARIO}&limit=500")["items"]
        loras = [LoraFile(*weights_on_disk(reef_home, release)) for release in releases]
    assert clients.failed == []
    assert [release["number"] for release in chain] == list(range(SWAPS + 2, 0, -1))
    check_records(reef_home, model_path, clients.receipts, chain, loras)


def weights_on_disk(home: Home, release: dict[str, Any]) -> tuple[Path, str, str]:
    sha = release["weights"]["sha256"]
    return home.releases / "lfs" / "objects" / sha[:2] / sha[2:4] / sha, sha, release["weights"]["base"]


def check_records(
    home: Home, model: Path, receipts: list[str], chain: list[dict[str, Any]], loras: list[LoraFile]
) -> None:
    """Every record's digest is its release's; for a sample of them, only those weights give its probabilities."""
    weights = {release["id"]: f"{release['weights']['base']}+{release['weights']['sha256']}" for release in chain}
    store = Store.open(home.database)
    try:
        rows = [store.record(receipt) for receipt in receipts]
        assert {row.weights for row in rows} == set(weights.values())
        wrong = [row.receipt for row in rows if row.weights != weights[row.release_id]]
        assert wrong == []
        sample = rows[:: max(1, len(rows) // CHECKED)]
        with Reader(model) as reader:
            for row in sample:
                span = store.span(row.receipt)
                assert span is not None
                right, other = sorted(loras, key=lambda lora: span.weights.endswith(lora.sha256), reverse=True)
                assert reader.off_by(span, right) * 4 < reader.off_by(span, other), row.receipt
    finally:
        store.close()
