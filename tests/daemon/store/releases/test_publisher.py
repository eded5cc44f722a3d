"""Candidates kept and released, compare-and-swap, rollbacks; and what a stock git and git-lfs make of the store."""

import hashlib
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.core import sshsig
from daemon.core.errors import BadWeights, Conflict, NotFound, RecipeError, StoreError, Untrusted
from daemon.core.paths import Home
from daemon.core.releases import ReleaseKind, ReleaseState, Verdict
from daemon.store.releases import Releases, lfs
from tests.daemon.store.releases.conftest import Git
from tests.fakes.releases import ACCEPTED, BASE_MODEL, candidate, judged, released, write_weights

COVERS = ("daemon/store/releases/weights.py",)


def test_a_first_release_is_whole(releases: Releases, git: Git) -> None:
    assert releases.head("default") is None
    proposed = releases.propose(candidate("job_1"), ACCEPTED)
    assert (proposed.number, proposed.state, proposed.head) == (0, ReleaseState.PENDING, False)
    assert releases.head("default") is None
    release = releases.publish(proposed, "base")
    assert release.id == f"r1-{proposed.id.partition('-')[2]}"
    assert (release.number, release.parent, release.kind) == (1, "base", ReleaseKind.LEARNED)
    assert releases.head("default") == releases.get("default", release.id) == release
    assert releases.files(release) == {"rules.md": "- rule of job_1\n"}
    assert release.files == {"harness/rules.md": hashlib.sha256(b"- rule of job_1\n").hexdigest()}
    assert release.gate == ACCEPTED
    assert (release.records, release.config, release.environment) == (
        ("rec_1", "rec_2"),
        {"batch": 4},
        {"reef": "0.2"},
    )
    assert releases.lora(release) is None
    assert git("show", "refs/reef/default:harness/rules.md") == "- rule of job_1"


def test_the_manifest_is_what_is_in_the_tree_and_clients_can_check_it(releases: Releases, git: Git) -> None:
    release = released(releases, "job_1")
    raw, signature = releases.manifest(release)
    sshsig.verify_manifest(raw, signature, releases.allowed)
    assert git("show", "refs/reef/default:release.json").encode() + b"\n" == raw
    told = json.loads(raw)
    assert (told["id"], told["number"], told["parent"]) == (release.id, 1, "base")
    assert told["gate"]["pairs"][0]["candidate_answer"] == "Hi."
    assert not {"state", "commit", "head", "note"} & told.keys()


@pytest.mark.parametrize("rank", ["true", "1e400", "[]", '"8"', "-1", "NaN"])
def test_what_peft_would_not_write_is_no_weights(releases: Releases, tmp_path: Path, rank: str) -> None:
    weights = write_weights(tmp_path / "w")
    (weights / "peft" / "adapter_config.json").write_text(f'{{"r": {rank}}}')
    with pytest.raises(BadWeights, match=r"adapter_config.json is not PEFT's configuration: .*(`\$\.r`|malformed)"):
        releases.propose(candidate("job_1", weights=weights), ACCEPTED)


def test_a_reason_is_a_line_that_acts_on_no_terminal(releases: Releases, git: Git) -> None:
    hostile = "\x1b[2J\u202ex\nReef-State: pending " + "y" * 9000
    release = releases.publish(releases.propose(replace(candidate("job_1"), reason=hostile), ACCEPTED), "base")
    back = releases.rollback("default", "base", hostile)
    for made in (release, back):
        assert (len(made.reason), made.reason[:28]) == (500, "?[2J?x Reef-State: pending y")
        assert releases.get("default", made.id).state is ReleaseState.RELEASED
    assert "\x1b" not in git("log", "--format=%B", "refs/reef/default")


def test_git_itself_verifies_the_commit(releases: Releases, git: Git) -> None:
    released(releases, "job_1")
    git("verify-commit", "refs/reef/default")
    assert git("fsck", "--strict", "--no-dangling") == ""


def test_the_harness_is_the_incumbents_with_the_changes(releases: Releases) -> None:
    first = released(releases, "job_1", harness={"rules.md": "a\n", "prompts/plan.md": "p\n"})
    second = released(releases, "job_2", first.id, harness={"rules.md": None, "prompts/fix.md": "f\n"})
    assert releases.files(second) == {"prompts/plan.md": "p\n", "prompts/fix.md": "f\n"}
    assert releases.files(first) == {"rules.md": "a\n", "prompts/plan.md": "p\n"}


def test_weights_are_kept_when_only_the_harness_changes_and_the_other_way(releases: Releases, tmp_path: Path) -> None:
    first = released(releases, "job_1", weights=write_weights(tmp_path / "a", 1))
    second = released(releases, "job_2", first.id, harness={"prompts/fix.md": "f\n"})
    assert second.weights == first.weights
    third = released(releases, "job_3", second.id, harness={}, weights=write_weights(tmp_path / "b", 2))
    assert releases.files(third) == {"rules.md": "- rule of job_1\n", "prompts/fix.md": "f\n"}
    assert third.weights is not None
    assert first.weights is not None
    assert third.weights.sha256 != first.weights.sha256
    assert third.weights.base == BASE_MODEL
    assert (third.weights.rank, third.weights.alpha, third.weights.bytes) == (8, 16.0, 50_000)


def test_weights_are_read_only_objects_named_by_their_hash(releases: Releases, tmp_path: Path) -> None:
    release = released(releases, "job_1", weights=write_weights(tmp_path, 3))
    lora = releases.lora(release)
    assert lora is not None
    content = (tmp_path / "adapter.gguf").read_bytes()
    assert lora.sha256 == hashlib.sha256(content).hexdigest() == lora.path.name
    assert (lora.path.read_bytes(), lora.base) == (content, BASE_MODEL)
    assert lora.path.stat().st_mode & 0o777 == 0o444
    (tmp_path / "adapter.gguf").write_bytes(b"changed later")
    assert releases.lora(release) == lora


@pytest.mark.parametrize("scenario", ["default", "work/api", "a.lock"])
def test_a_plain_clone_and_git_lfs_pull_get_everything(releases: Releases, tmp_path: Path, scenario: str) -> None:
    weights = write_weights(tmp_path / "made", 4)
    release = released(releases, "job_1", scenario=scenario, weights=weights)
    for words in releases.clone_commands(scenario, tmp_path / "clone"):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    clone = tmp_path / "clone"
    assert (clone / "harness" / "rules.md").read_text() == "- rule of job_1\n"
    assert json.loads((clone / "release.json").read_text())["id"] == release.id
    for path in ("adapter.gguf", "peft/adapter_model.safetensors", "peft/adapter_config.json"):
        assert (clone / "weights" / path).read_bytes() == (weights / path).read_bytes()
    lora = releases.lora(release)
    assert lora is not None, "git-lfs has not harmed the store"


def test_a_pull_refuses_damaged_weights_and_mends_one_that_was_cut(releases: Releases, tmp_path: Path) -> None:
    release = released(releases, "job_1", weights=write_weights(tmp_path / "made", 4))
    lora = releases.lora(release)
    assert lora is not None
    whole, clone = lora.path.read_bytes(), tmp_path / "clone"
    lora.path.chmod(0o644)
    lora.path.write_bytes(whole[:-1] + b"?")

    def run(words: list[str]) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"GIT_LFS_SKIP_SMUDGE": "1"}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    *commands, pull = releases.clone_commands("default", clone)
    assert [run(words).returncode for words in commands] == [0, 0]
    refused = run(pull)
    assert refused.returncode != 0
    assert "invalid hash" in refused.stderr
    assert lfs.parse((clone / "weights/adapter.gguf").read_bytes()), "what cannot be proved is not put there"
    lora.path.write_bytes(whole)
    cut = lfs.Objects(clone / ".git").path(lora.sha256)
    cut.parent.mkdir(parents=True, exist_ok=True)
    cut.write_bytes(whole[:1000])
    assert run(pull).returncode == 0
    assert (clone / "weights/adapter.gguf").read_bytes() == whole


# -- once, in order -----------------------------------------------------------------------------------


def test_a_job_is_released_once(releases: Releases) -> None:
    proposed = releases.propose(candidate("job_1"), ACCEPTED)
    first = releases.publish(proposed, "base")
    assert releases.publish(proposed, "base") == first
    assert releases.propose(candidate("job_1"), ACCEPTED) == first
    back = releases.rollback("default")
    again = releases.publish(proposed, "base")
    assert (again.id, again.head) == (first.id, False)
    assert releases.head("default") == back


def test_a_job_that_asks_again_from_its_own_release_gets_it(releases: Releases) -> None:
    first = released(releases, "job_1")
    assert releases.propose(candidate("job_1", parent=first.id), ACCEPTED).id == first.id


def test_jobs_whose_names_begin_alike_are_two(releases: Releases) -> None:
    first = released(releases, "job_11")
    second = released(releases, "job_1", first.id)
    assert (first.job, second.job, second.number) == ("job_11", "job_1", 2)


def test_a_candidate_is_kept_once_a_job(releases: Releases) -> None:
    first = releases.propose(candidate("job_1"), ACCEPTED)
    assert releases.propose(candidate("job_1", harness={"rules.md": "other\n"}), None) == first


def test_who_comes_second_gets_a_conflict_and_keeps_the_candidate(releases: Releases) -> None:
    slow = releases.propose(candidate("job_slow"), ACCEPTED)
    head = released(releases, "job_fast")
    with pytest.raises(Conflict, match=rf"made from base, the head of 'default' is {head.id}"):
        releases.publish(slow, "base")
    with pytest.raises(Conflict):
        releases.publish(slow, head.id)
    assert releases.head("default") == head
    kept, _ = releases.list("default", states=frozenset({ReleaseState.PENDING}))
    assert [row.id for row in kept] == [slow.id]


def test_scenarios_have_chains_of_their_own(releases: Releases) -> None:
    one = released(releases, "job_1", scenario="work")
    two = released(releases, "job_2", scenario="work/api")
    assert (one.number, two.number) == (1, 1)
    assert releases.scenarios() == ["work", "work/api"]
    assert releases.get("work/api", two.id) == two
    with pytest.raises(NotFound, match="work has no release"):
        releases.get("work", two.id)


# -- states -------------------------------------------------------------------------------------------


def test_a_candidate_is_turned_down_and_found_again(releases: Releases, git: Git) -> None:
    proposed = releases.propose(candidate("job_1"), judged(Verdict.INCONCLUSIVE), ReleaseState.REJECTED)
    assert proposed.kind is ReleaseKind.UNPROVEN
    told = releases.reject("default", proposed.id)
    assert (told.state, told.note) == (ReleaseState.REJECTED, "turned down by a person")
    assert releases.get("default", proposed.id) == told
    assert releases.list("default") == ([], None)
    rows, _ = releases.list("default", states=frozenset(ReleaseState))
    assert rows == [told]
    git("verify-commit", "refs/reef-candidates/job_1")


def test_what_is_released_cannot_be_turned_down(releases: Releases) -> None:
    release = released(releases, "job_1")
    with pytest.raises(Conflict, match="is released"):
        releases.reject("default", release.id)


def test_a_released_candidate_is_found_under_its_old_id(releases: Releases) -> None:
    proposed = releases.propose(candidate("job_1"), ACCEPTED)
    first = releases.publish(proposed, "base")
    second = released(releases, "job_2", first.id)
    assert releases.get("default", proposed.id).id == first.id
    assert releases.list("default", states=frozenset(ReleaseState))[0][0].id == second.id


# -- back ---------------------------------------------------------------------------------------------


def test_rollback_is_a_new_release_of_an_old_snapshot(releases: Releases, tmp_path: Path) -> None:
    first = released(releases, "job_1", weights=write_weights(tmp_path / "a", 1))
    second = released(releases, "job_2", first.id, weights=write_weights(tmp_path / "b", 2))
    back = releases.rollback("default", reason="it talks too much")
    assert (back.number, back.kind, back.parent, back.restores) == (3, ReleaseKind.ROLLBACK, second.id, first.id)
    assert (back.files, back.weights, back.reason) == (first.files, first.weights, "it talks too much")
    assert releases.lora(back) == releases.lora(first)
    assert releases.rollback("default").restores == second.id


def test_rollback_to_base_serves_nothing_evolved(releases: Releases, tmp_path: Path) -> None:
    first = released(releases, "job_1", weights=write_weights(tmp_path, 1))
    back = releases.rollback("default")
    assert (back.restores, back.files, back.weights) == ("base", {}, None)
    assert releases.files(back) == {}
    assert releases.lora(back) is None
    next_one = released(releases, "job_2", back.id)
    assert (next_one.number, releases.files(next_one)) == (3, {"rules.md": "- rule of job_2\n"})
    assert releases.rollback("default", first.id).files == first.files


def test_there_must_be_something_to_go_back_to(releases: Releases) -> None:
    with pytest.raises(NotFound, match="no release to roll back"):
        releases.rollback("default")
    head = released(releases, "job_1")
    waits = releases.propose(candidate("job_2", head.id), ACCEPTED)
    with pytest.raises(Conflict, match="is the head already"):
        releases.rollback("default", head.id)
    with pytest.raises(NotFound):
        releases.rollback("default", "r9-00000000")
    with pytest.raises(Conflict, match="never released"):
        releases.rollback("default", waits.id)


# -- held ---------------------------------------------------------------------------------------------


def test_clients_are_held_at_a_release(releases: Releases, git: Git) -> None:
    assert (releases.pinned("default"), releases.serving("default")) == (None, None)
    first = released(releases, "job_1")
    releases.pin(first)
    second = released(releases, "job_2", first.id)
    assert (releases.pinned("default"), releases.head("default")) == (replace(first, head=False), second)
    assert releases.serving("default") == releases.pinned("default")
    git("gc", "--quiet", "--prune=now")
    assert Releases.serving(releases, "default") == replace(first, head=False)
    assert releases.unpin("default")
    assert not releases.unpin("default")
    assert releases.serving("default") == second


def test_a_rollback_holds_clients_where_it_went(releases: Releases) -> None:
    first = released(releases, "job_1")
    second = released(releases, "job_2", first.id)
    releases.pin(second)
    back = releases.rollback("default", first.id)
    assert (releases.pinned("default"), back.restores) == (back, first.id)
    releases.unpin("default")
    again = releases.rollback("default", second.id, pin=True)
    assert releases.pinned("default") == again


def test_only_a_release_of_the_chain_holds_clients(releases: Releases, git: Git) -> None:
    first = released(releases, "job_1")
    waits = releases.propose(candidate("job_2", first.id), ACCEPTED)
    with pytest.raises(Conflict, match="never released"):
        releases.pin(waits)
    other = released(releases, "job_3", scenario="other")
    for forged in (waits, other):
        assert forged.commit is not None
        git("update-ref", "refs/reef-pins/default", forged.commit)
        with pytest.raises(Untrusted):
            releases.pinned("default")
        assert releases.serving("default") == first
    second = released(releases, "job_4", first.id)
    assert second.commit is not None
    git("update-ref", "refs/reef-pins/default", second.commit)
    git("update-ref", "refs/reef/default", first.commit or "")
    releases._seen._path.unlink()
    with pytest.raises(Untrusted, match="not in the chain"):
        releases.pinned("default")


# -- refused ------------------------------------------------------------------------------------------


def test_what_proposes_nothing_new_or_too_much_is_refused(releases: Releases, git: Git) -> None:
    head = released(releases, "job_1")
    with pytest.raises(RecipeError, match="nothing in it is different from base"):
        releases.propose(candidate("job_2", harness={}), ACCEPTED)
    with pytest.raises(RecipeError, match=f"nothing in it is different from {head.id}"):
        releases.propose(candidate("job_2", head.id, harness={"rules.md": "- rule of job_1\n"}), ACCEPTED)
    with pytest.raises(RecipeError, match="text only"):
        releases.propose(candidate("job_2", harness={"extensions/x.ts": "export {}"}), ACCEPTED)
    with pytest.raises(RecipeError, match="not a job's id"):
        releases.propose(candidate("../heads/x"), ACCEPTED)
    with pytest.raises(NotFound):
        releases.propose(candidate("job_2", "r7-00000000"), ACCEPTED)
    assert git("for-each-ref", "--format=%(refname)", "refs/reef-candidates") == ""


def test_weights_that_are_none_are_refused(releases: Releases, tmp_path: Path) -> None:
    weights = write_weights(tmp_path)
    (weights / "peft" / "adapter_config.json").write_text("[1]")
    with pytest.raises(BadWeights, match="not PEFT's configuration"):
        releases.propose(candidate("job_1", weights=weights), ACCEPTED)
    (weights / "adapter.gguf").unlink()
    with pytest.raises(BadWeights, match="no weights at"):
        releases.propose(candidate("job_1", weights=weights), ACCEPTED)


def test_settings_that_json_cannot_hold_are_refused(releases: Releases) -> None:
    with pytest.raises(RecipeError, match="as JSON"):
        releases.propose(replace(candidate("job_1"), config={"rate": float("nan")}), ACCEPTED)


def test_without_git_it_is_said(reef_home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only then: the daemon serves on machines without git too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    releases = Releases.open(reef_home)
    assert (releases.scenarios(), releases.standing("default")) == ([], (None, None))
    with pytest.raises(StoreError, match="git is not installed"):
        releases.propose(candidate("job_1"), ACCEPTED)


def test_a_reason_of_many_lines_cannot_pass_for_another_job(releases: Releases) -> None:
    sly = replace(candidate("job_1"), reason="x\n\nReef-Job: job_2\nReef-State: released")
    first = releases.publish(releases.propose(sly, ACCEPTED), "base")
    assert first.reason == " ".join(sly.reason.split())
    second = released(releases, "job_2", first.id)
    assert second.number == 2
