"""A job's files: whole or not there, and the same when they are read again."""

from pathlib import Path

import pytest

from daemon.core.errors import RecipeError
from daemon.core.learning import Batch, Feedback
from daemon.core.releases import Candidate, GateResult, Guard, Pair, Release, ReleaseKind, Verdict, Weights
from recipes.base import Proposal
from recipes.directory import Curve, JobDirectory, Result, Spec

HEAD = Release("r1-ab", "default", 1, ReleaseKind.LEARNED, "base", 5, "why", weights=Weights("aa", "bb", 9, 8, 16.0))
GATE = GateResult(
    Verdict.REJECT, "worse", 0.1, 1, 5, 0, 0.5, 0.9, 40, 5, 1, Guard(3, 3, 1, 0, False), (Pair("t", "p", True, False),)
)
CANDIDATE = Candidate("default", "r1-ab", "why", "sft", "job_a", {"rank": 8}, ("rec_a",), harness={"a": "b", "c": None})


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    made = JobDirectory(tmp_path / "job_a")
    made.write_spec(Spec("job_a", "default", "sft", {"rank": 8}, HEAD, {"playbook.md": "x"}, model="bb"))
    return made


def test_everything_comes_back_as_it_was_written(directory: JobDirectory) -> None:
    spec = directory.spec()
    assert spec is not None
    assert (spec.incumbent, spec.parent, spec.harness, spec.model) == (HEAD, "r1-ab", {"playbook.md": "x"}, "bb")
    assert (directory.batch(), directory.candidate(), directory.result()) == (None, None, None)
    batch = Batch(notes=(Feedback("rep_a", None, "be brief", None),))
    directory.write_batch(batch)
    directory.write_result(Result(CANDIDATE, GATE, "so"))
    assert directory.batch() == batch
    assert directory.result() == Result(CANDIDATE, GATE, "so")
    assert {path.stat().st_mode & 0o777 for path in directory.root.iterdir()} == {0o600}
    directory.forget_batch()
    directory.forget_batch()
    assert directory.batch() is None


def test_a_candidate_has_its_own_copy_of_the_weights(directory: JobDirectory, tmp_path: Path) -> None:
    peft = tmp_path / "out"
    peft.mkdir()
    (tmp_path / "lora.gguf").write_bytes(b"GGUF")
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        (peft / name).write_text(name)
    kept = directory.write_candidate(CANDIDATE, Proposal("why", lora=tmp_path / "lora.gguf", peft=peft))
    assert directory.candidate() == kept
    assert (kept.lora, kept.peft) == (str(directory.adapter), str(directory.peft))
    assert directory.adapter.read_bytes() == b"GGUF"
    assert sorted(path.name for path in directory.peft.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


def test_weights_that_are_not_there_are_named_and_no_candidate_is_left(directory: JobDirectory, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"no\.gguf, which is no file"):
        directory.write_candidate(CANDIDATE, Proposal("why", lora=tmp_path / "no.gguf"))
    assert directory.candidate() is None


def test_a_torn_pair_does_not_count(directory: JobDirectory) -> None:
    assert directory.pairs() == []
    one, two = Pair("t1", "p", False, True, "a\n", "b"), Pair("t2", "p", True, True)
    directory.add_pair(one)
    path = directory.root / "gate.jsonl"
    with path.open("ab") as file:
        file.write(b'{"task":"t2","pro')
    assert directory.pairs() == [one]
    directory.add_pair(two)
    assert directory.pairs() == [one, two]


def test_the_mark_moves_with_the_files_not_with_the_log(directory: JobDirectory) -> None:
    before = directory.mark()
    directory.log.write_text("talk")
    directory.add_point("loss", 1, 2.0)  # a step that is done again and again is no progress
    assert directory.mark() == before
    directory.write_batch(Batch())
    assert directory.mark() != before


def test_curves_are_what_was_measured(directory: JobDirectory) -> None:
    assert directory.curves() == []
    for at, loss in (
        (1, 3.5),
        (2, 3.0),
        (2, 2.5),
        (3, float("nan")),
        (4, 1e300),
    ):  # step 2 was told again by a resumed training
        directory.add_point("loss", at, loss)
    with (directory.root / "curves.jsonl").open("ab") as file:
        file.write(b'["lo')
    for incumbent in (True, False):
        directory.add_pair(Pair("t", "p", incumbent, True))
    assert directory.curves() == [
        Curve("loss", ((1, 3.5), (2, 2.5))),
        Curve("score: served", ((1, 1.0), (2, 0.5))),
        Curve("score: candidate", ((1, 1.0), (2, 1.0))),
    ]


def test_a_link_instead_of_curves_is_not_followed(directory: JobDirectory, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('["loss",1,2.0]\n')
    (directory.root / "curves.jsonl").symlink_to(tmp_path / "elsewhere")
    assert directory.curves() == []
