"""Candidates and judgements as recipes and gates make them, and small weights with the files that PEFT writes."""

import json
from collections.abc import Mapping
from pathlib import Path

from daemon.core.releases import Candidate, GateResult, Pair, Release, Verdict
from daemon.store.releases import Releases
from tests.fakes import gguf

BASE_MODEL = "b" * 64


def judged(verdict: Verdict = Verdict.ACCEPT) -> GateResult:
    return GateResult(
        verdict=verdict, reason="9 better, 1 worse of 12", alpha=0.1, wins=9, losses=1, ties=2, e_value=23.5,
        p_value=0.011, planned=40, incumbent_passed=2, candidate_passed=10,
        pairs=(Pair("tsk_1", "Say hi", False, True, "Hello there. Hello.", "Hi."),),
    )  # fmt: skip


ACCEPTED = judged()


def candidate(
    job: str,
    parent: str = "base",
    *,
    scenario: str = "default",
    harness: Mapping[str, str | None] | None = None,
    weights: Path | None = None,
) -> Candidate:
    """A rule that names its job; with ``weights`` (`write_weights`) a LoRA adapter too."""
    return Candidate(
        scenario=scenario,
        parent=parent,
        reason=f"what {job} learned",
        recipe="playbook",
        job=job,
        config={"batch": 4},
        records=("rec_1", "rec_2"),
        harness={"rules.md": f"- rule of {job}\n"} if harness is None else harness,
        lora=str(weights / "adapter.gguf") if weights else None,
        peft=str(weights / "peft") if weights else None,
        base=BASE_MODEL if weights else None,
        environment={"reef": "0.2"},
    )


def write_weights(folder: Path, seed: int = 0, size: int = 50_000) -> Path:
    """What a training job leaves in its ``candidate/`` folder."""
    (folder / "peft").mkdir(parents=True, exist_ok=True)
    (folder / "adapter.gguf").write_bytes(gguf.make(kind="adapter", seed=seed, size=size))
    (folder / "peft" / "adapter_model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}" + bytes([seed]) * size)
    (folder / "peft" / "adapter_config.json").write_text(json.dumps({"r": 8, "lora_alpha": 16, "peft_type": "LORA"}))
    return folder


def released(releases: Releases, job: str, parent: str = "base", **fields: object) -> Release:
    """A candidate proposed, accepted and published."""
    made = candidate(job, parent, **fields)  # type: ignore[arg-type]
    return releases.publish(releases.propose(made, ACCEPTED), parent)
