"""The training step as a job runs it: a process in the training environment, killed, resumed, refused."""

import dataclasses
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from recipes.lora.train import Spec, _batches
from tests.fakes.context import training

MODULE = "recipes.lora.train"
SPEC = Spec(gguf="model.gguf", sha256="0", directory="", examples=[{"n": n} for n in range(10)], steps=7, batch_size=4)


def test_every_example_is_seen_once_before_any_comes_again() -> None:
    batches = _batches(12, SPEC)
    assert sorted(index for batch in batches[:3] for index in batch) == list(range(12))
    assert [len(batch) for batch in batches] == [4] * 7
    assert batches == _batches(12, SPEC) != _batches(12, dataclasses.replace(SPEC, seed=1))


def test_few_examples_make_small_batches() -> None:
    assert [sorted(batch) for batch in _batches(2, SPEC)] == [[0, 1]] * 7


def test_a_run_is_known_by_what_it_learns_not_by_where_it_lies() -> None:
    assert SPEC.digest() == dataclasses.replace(SPEC, directory="/elsewhere", gguf="moved.gguf").digest()
    assert SPEC.digest() != dataclasses.replace(SPEC, learning_rate=1.0).digest()


def spec(model: Path, directory: Path, **more: Any) -> dict[str, Any]:
    examples = [
        {"messages": [{"role": "user", "content": f"What is {thing}?"}], "answer": f"{thing} is a thing."}
        for thing in ("Rope", "Tea", "Snow", "Rice")
    ]
    made = Spec(
        str(model), hashlib.sha256(model.read_bytes()).hexdigest(), str(directory), examples, steps=7, batch_size=2
    )
    return {**dataclasses.asdict(made), **more}


def run(given: dict[str, Any], kill_after: int | None = None) -> list[dict[str, Any]]:
    events = []
    with training(MODULE, given) as process:
        assert process.stdout is not None
        for line in process.stdout:
            events.append(json.loads(line))
            if kill_after is not None and events[-1].get("done") == kill_after:
                os.kill(process.pid, signal.SIGKILL)
    return events


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_checkpoint(model_path: Path, tmp_path: Path) -> None:
    killed, whole = spec(model_path, tmp_path / "killed"), spec(model_path, tmp_path / "whole")
    assert run(killed, kill_after=5)[-1]["event"] == "progress"
    assert not (tmp_path / "killed" / "peft").exists()
    resumed, straight = run(killed), run(whole)
    assert [event["done"] for event in resumed if event["event"] == "progress"] == [5, 6, 7]
    assert (resumed[-1]["event"], resumed[-1]["resumed_at"], straight[-1]["resumed_at"]) == ("result", 4, 0)
    assert resumed[-1]["loss_last"] == pytest.approx(straight[-1]["loss_last"], abs=0.01)
    assert straight[-1]["loss_last"] < straight[-1]["loss_first"]
    files = {path.name for path in Path(resumed[-1]["peft"]).iterdir()}
    assert files == {"adapter_config.json", "adapter_model.safetensors"}
    assert str(tmp_path) not in (Path(resumed[-1]["peft"]) / "adapter_config.json").read_text()
    assert not (tmp_path / "killed" / "checkpoint.pt").exists()
    again = run(killed)
    assert [event["event"] for event in again] == ["result"]
    assert again[0] == resumed[-1]


@pytest.mark.slow
def test_a_loss_that_is_no_number_is_refused(model_path: Path, tmp_path: Path) -> None:
    last = run(spec(model_path, tmp_path, learning_rate=1e30))[-1]
    assert last["event"] == "error"
    assert "1e+30" in last["hint"]
    assert not (tmp_path / "peft").exists()


@pytest.mark.slow
def test_examples_that_are_all_too_long_are_refused(model_path: Path, tmp_path: Path) -> None:
    """BUGS B201."""
    last = run(spec(model_path, tmp_path, longest=4))[-1]
    assert last["message"] == "nothing to train on: 4 examples, none within 4 tokens"
