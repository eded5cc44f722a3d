"""A job that proposes weights, through the real engine: asked with and without them, judged, refused or released."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.e2e.conftest import add_model
from tests.fakes.daemon import RunningDaemon, running_daemon, until

pytestmark = pytest.mark.engine

#: Proposes the adapter that its settings name, after it has asked the model inside itself.
RECIPE = """
from dataclasses import dataclass
from pathlib import Path

from daemon.core.learning import Batch
from daemon.core.records import Message, Text
from recipes.base import Proposal, Recipe, Signal, Target, Which


@dataclass(frozen=True, slots=True)
class Config:
    adapter: str = ""
    peft: str = ""


class Given(Recipe):
    name, summary, signals, target, Config = "given", "", (Signal.INSTRUCTION,), Target.WEIGHTS, Config

    def select(self, stream):
        asked = stream.instructions()
        return Batch(instructions=tuple(asked)) if asked else None

    def grow(self, batch, context):
        path, sha256 = context.base_model()
        assert path.exists()
        said = context.answer([[Message("user", (Text(f"Count to {n}."),))] for n in range(2)], max_tokens=4)
        assert all(answer.weights == sha256 for answer in said), said
        context.say(f"{sum(answer.tokens for answer in said)} tokens from the base")
        return Proposal("weights that were given", lora=Path(self.config.adapter), peft=Path(self.config.peft))
"""


@pytest.fixture(scope="module")
def daemon(module_home: Home, model_path: Path) -> Iterator[RunningDaemon]:
    (module_home.root / "given.py").write_text(RECIPE)
    with running_daemon(module_home) as running:
        add_model(running, model_path)
        yield running


def task(daemon: RunningDaemon) -> None:
    body = {"prompt": "Say something", "check": {"form": "one_sentence"}, "max_tokens": 8}
    assert daemon.control("POST", "/reef/tasks", body)[0] == 200


def proposed(daemon: RunningDaemon, adapter: Path, peft: Path) -> dict[str, Any]:
    """The job that proposed these weights, as it ended."""
    settings = {"adapter": str(adapter), "peft": str(peft)}
    status, told = daemon.control("POST", "/reef/train", {"text": "learn", "recipe": "given:Given"})
    assert status == 200, told
    daemon.control("POST", f"/reef/jobs/{told['job']['id']}/cancel", {})  # its settings would be the defaults
    status, row = daemon.control("POST", "/reef/jobs", {"recipe": "given:Given", "config": settings})
    assert status == 202, row

    def over() -> dict[str, Any] | None:
        job: dict[str, Any] = daemon.get(f"/reef/jobs/{row['id']}")
        return job if job["state"] in ("done", "failed") else None

    found: dict[str, Any] = until(over, "the job is over")
    return found


def test_weights_are_judged_by_the_engine_that_serves(daemon: RunningDaemon, tmp_path: Path, model_path: Path) -> None:
    from tests.fakes import lora  # numpy, not for every test

    made = lora.lora_file(model_path, tmp_path / "lora")
    task(daemon)
    job = proposed(daemon, made.path, made.path.with_name("peft"))
    assert (job["state"], job["error"]) == ("done", None), job["log"]
    assert job["outcome"] in ("inconclusive", "rejected")
    release = daemon.get(f"/reef/releases/{job['release_id']}")
    assert release["weights"]["sha256"] == made.sha256
    assert release["gate"]["wins"] + release["gate"]["losses"] + release["gate"]["ties"] >= 1
    assert not (daemon.home.jobs / job["id"] / "candidate").exists()


def test_a_file_that_is_no_adapter_is_refused_before_it_serves(daemon: RunningDaemon, tmp_path: Path) -> None:
    broken, peft = tmp_path / "broken.gguf", tmp_path / "peft"
    broken.write_bytes(b"GGUF" + bytes(100))
    peft.mkdir()
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        (peft / name).write_bytes(b"{}")
    task(daemon)
    job = proposed(daemon, broken, peft)
    assert job["state"] == "failed"
    assert daemon.get("/reef/releases")["items"] == []
