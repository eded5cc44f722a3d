"""Weights released, swapped and taken back under live requests, on the real engine and model."""

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daemon.core.paths import Home
from daemon.core.releases import LoraFile, Release
from daemon.store.releases import Releases
from tests.e2e.conftest import add_model
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.lora import lora_file
from tests.fakes.releases import ACCEPTED, candidate

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def daemon(module_home: Home, model_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(module_home) as running:
        add_model(running, model_path)
        yield running


@pytest.fixture(scope="module")
def store(daemon: RunningDaemon) -> Releases:
    return Releases.open(daemon.home)


@pytest.fixture(scope="module")
def adapters(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[LoraFile]:
    """Two that change every answer, each otherwise, and one that changes nothing."""
    folder = tmp_path_factory.mktemp("adapters")
    return [
        lora_file(model_path, folder / str(seed), seed=seed, scale=scale) for seed, scale in enumerate((0.3, 0.3, 0))
    ]


def kept(store: Releases, job: str, lora: LoraFile, *, base: str | None = None) -> Release:
    """What a job leaves: a candidate that the gate accepted."""
    made = candidate(job, store.standing("default").id, harness={})
    made = replace(made, lora=str(lora.path), peft=str(lora.path.parent / "peft"), base=base or lora.base)
    return store.propose(made, ACCEPTED)


def approve(daemon: RunningDaemon, release: Release) -> tuple[int, Any]:
    return daemon.control("POST", f"/reef/releases/{release.id}/approve", {})


def ask(daemon: RunningDaemon, text: str = "Name a colour.") -> tuple[str, dict[str, Any], str]:
    """A streamed answer: the release in its header, its record, what it said."""
    body = {
        "model": "default", "messages": [{"role": "user", "content": text}], "stream": True,
        "temperature": 0, "max_tokens": 8,
    }  # fmt: skip
    status, headers, raw = daemon.post("/v1/chat/completions", body)
    assert status == 200, raw
    assert raw.endswith(b"data: [DONE]\n\n"), raw
    chunks = [json.loads(line[6:]) for line in raw.split(b"\n\n") if line.startswith(b"data: {")]
    said = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    record = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    return headers["x-reef-release-id"], record, said


def test_swaps_and_rollbacks_under_live_streams(
    daemon: RunningDaemon, store: Releases, adapters: list[LoraFile]
) -> None:
    """No request fails, and each record's weights are those of the release in its header."""
    over = threading.Event()
    first, second, _ = adapters
    digests = {"base": first.base}

    def client(number: int) -> list[tuple[str, str]]:
        seen = []
        while not over.is_set():
            release, record, _ = ask(daemon, f"Client {number} asks: name an animal.")
            assert record["release_id"] == release
            seen.append((release, record["weights"]))
        return seen

    with ThreadPoolExecutor(2) as pool:
        clients = [pool.submit(client, number) for number in range(2)]
        try:
            for step, lora in enumerate((first, second)):
                status, release = approve(daemon, kept(store, f"job_swap_{step}", lora))
                assert status == 200, release
                digests[release["id"]] = lora.weights
                ask(daemon)
                status, back = daemon.control("POST", "/reef/releases/rollback", {})
                assert status == 200, back
                digests[back["id"]] = digests[back["restores"]]
                ask(daemon)
        finally:
            over.set()
        seen = [pair for future in clients for pair in future.result()]
    assert len({release for release, _ in seen}) >= 3, "the swaps were seen"
    assert [pair for pair in seen if digests[pair[0]] != pair[1]] == []


def test_what_answers_changes_and_comes_back(daemon: RunningDaemon, store: Releases, adapters: list[LoraFile]) -> None:
    daemon.control("POST", "/reef/releases/rollback", {"to": "base"})
    _, record, before = ask(daemon)
    assert record["weights"] == adapters[0].base
    assert approve(daemon, kept(store, "job_changes", adapters[1]))[0] == 200
    release, record, during = ask(daemon)
    assert (record["weights"], record["release_id"]) == (adapters[1].weights, release)
    assert during != before
    assert daemon.control("POST", "/reef/releases/rollback", {})[0] == 200
    assert ask(daemon)[2] == before


@pytest.mark.parametrize(("spoilt", "because"), [("nan", "NaN"), ("base", "was trained on"), ("nothing", "")])
def test_weights_that_must_not_serve_are_refused_and_the_head_stays(
    daemon: RunningDaemon, store: Releases, adapters: list[LoraFile], tmp_path: Path, spoilt: str, because: str
) -> None:
    before = store.standing("default").id
    good = adapters[0]
    if spoilt == "base":
        waits = kept(store, "job_bad_base", good, base="0" * 64)
    elif spoilt == "nan":
        data = bytearray(good.path.read_bytes())
        data[-64:] = np.full(16, np.nan, "<f4").tobytes()
        (tmp_path / "peft").symlink_to(good.path.parent / "peft")
        (tmp_path / "adapter.gguf").write_bytes(bytes(data))
        digest = hashlib.sha256(data).hexdigest()
        waits = kept(store, "job_bad_nan", LoraFile(tmp_path / "adapter.gguf", digest, good.base))
    else:
        waits = kept(store, "job_bad_still", adapters[2])
    status, told = approve(daemon, waits)
    assert (status, told["error"]["kind"]) == (409, "bad_weights"), told
    assert because in told["error"]["message"]
    assert store.standing("default").id == before
    assert ask(daemon)[0] == before


def test_damaged_weights_do_not_serve_after_a_restart(
    reef_home: Home, model_path: Path, adapters: list[LoraFile]
) -> None:
    with running_daemon(reef_home) as daemon:
        add_model(daemon, model_path)
        store = Releases.open(reef_home)
        _, first = approve(daemon, kept(store, "job_1", adapters[0]))
        _, second = approve(daemon, kept(store, "job_2", adapters[1]))
        assert ask(daemon)[1]["weights"] == adapters[1].weights
        daemon.kill()
    path = next((reef_home.releases / "lfs").rglob(adapters[1].sha256))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])
    with running_daemon(reef_home) as daemon:
        release, record, _ = ask(daemon)
        assert (release, record["weights"]) == (first["id"], adapters[0].weights)
        assert f"{second['id']} is not used" in daemon.get("/reef/status")["notes"][0]


def test_weights_damaged_while_they_serve_cost_no_request(
    reef_home: Home, model_path: Path, adapters: list[LoraFile]
) -> None:
    """The engine's process is gone and loads again: what it then finds is refused, the model answers alone."""
    with running_daemon(reef_home, "server: {port: 0}\nembedded: {idle_unload_seconds: 0.2}\n") as daemon:
        add_model(daemon, model_path)
        store = Releases.open(reef_home)
        _, release = approve(daemon, kept(store, "job_1", adapters[0]))
        path = next((reef_home.releases / "lfs").rglob(adapters[0].sha256))
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-1])
        answered = release["id"], adapters[0].weights
        for _ in range(100):
            told, record, _ = ask(daemon)
            answered = told, record["weights"]
            if record["weights"] == adapters[0].base:
                break
            threading.Event().wait(0.3)
        assert answered == (release["id"], adapters[0].base)
        assert "are not used" in daemon.get("/reef/status")["notes"][0]
