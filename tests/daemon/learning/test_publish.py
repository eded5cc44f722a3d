"""What becomes of a candidate: the order of proof, chain and serving, and every way it may not go on."""

import asyncio
import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadWeights, Conflict, EngineUnavailable, GateRefused, NotFound, RecipeError
from daemon.core.paths import Home
from daemon.core.releases import PERSON, Policy, ReleaseKind, ReleaseState, Verdict
from daemon.engines.base import LoraFile, ModelFile
from daemon.learning import publish
from daemon.server.heads import BASE, Heads
from daemon.store.releases import Releases
from tests.fakes.releases import ACCEPTED, BASE_MODEL, candidate, judged, write_weights
from tests.fakes.token_engine import ScriptedEngine

MODEL = ModelFile("tiny", Path("tiny.gguf"), 1, BASE_MODEL, "", "")


@dataclass
class Desk:
    """The part of a daemon that releases: a real store and heads, a scripted engine."""

    releases: Releases
    embedded: ScriptedEngine = field(default_factory=ScriptedEngine)
    model: ModelFile | None = MODEL
    told: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heads = Heads(self.releases, lambda: self.model, self.tell)
        self.heads.load()

    async def tell(self, event: str, told: dict[str, Any], by: str) -> None:
        self.told.append(told | {"event": event, "by": by})

    async def publish(self, job: str, parent: str = "base", **fields: Any) -> Any:
        policy = fields.pop("policy", Policy.AUTO)
        gate = fields.pop("gate", ACCEPTED)
        return await publish.publish_candidate(self, candidate(job, parent, **fields), gate, policy)

    @property
    def serving(self) -> str:
        return self.heads.served("default").release_id


@pytest.fixture
def desk(reef_home: Home) -> Desk:
    return Desk(Releases.open(reef_home))


@pytest.fixture
def again(reef_home: Home) -> Any:
    """The same home after the daemon was killed."""
    return lambda: Desk(Releases.open(reef_home))


async def test_an_accepted_candidate_is_released_and_serves(desk: Desk, tmp_path: Path) -> None:
    release = await desk.publish("job_1", weights=write_weights(tmp_path))
    assert (release.kind, release.number) == (ReleaseKind.LEARNED, 1)
    served = desk.heads.served("default")
    assert (served.release_id, served.number) == (release.id, 1)
    assert desk.embedded.loaded == [served.lora]
    assert desk.heads.served("other") == BASE
    assert [(row["state"], row["id"]) for row in desk.told][-1] == ("released", release.id)
    assert "pairs" not in desk.told[-1]["gate"]


async def test_weights_are_proved_before_the_head_moves(desk: Desk, tmp_path: Path) -> None:
    seen: list[object] = []
    desk.embedded.on_load = lambda: seen.append((desk.releases.head("default"), desk.serving))
    await desk.publish("job_1", weights=write_weights(tmp_path))
    assert seen == [(None, "base")]


async def test_weights_that_the_engine_refuses_are_never_released(desk: Desk, tmp_path: Path, again: Any) -> None:
    weights = write_weights(tmp_path)
    desk.embedded.refused.add(hashlib.sha256((weights / "adapter.gguf").read_bytes()).hexdigest())
    with pytest.raises(BadWeights, match="holds NaN"):
        await desk.publish("job_1", weights=weights)
    assert (desk.serving, desk.releases.head("default")) == ("base", None)
    kept, _ = desk.releases.list("default", states=frozenset(ReleaseState))
    assert [(row.state, row.note[12:]) for row in kept] == [(ReleaseState.REJECTED, " holds NaN")]
    assert (await again().publish("job_1", weights=weights)).state is ReleaseState.REJECTED


async def test_without_an_engine_what_was_accepted_waits_for_a_person(desk: Desk, tmp_path: Path, again: Any) -> None:
    def missing() -> None:
        raise EngineUnavailable("the embedded engine is not installed")

    desk.embedded.on_load = missing
    waits = await desk.publish("job_1", weights=write_weights(tmp_path))
    assert (waits.state, waits.note) == (ReleaseState.PENDING, "not released: the embedded engine is not installed")
    assert (desk.releases.head("default"), desk.heads.waiting()) == (None, [waits.id])
    with pytest.raises(EngineUnavailable):
        await publish.approve(desk, "default", waits.id)
    later = again()
    assert (await publish.approve(later, "default", waits.id)).number == 1


async def test_review_waits_for_a_person(desk: Desk) -> None:
    waits = await desk.publish("job_1", policy=Policy.REVIEW)
    assert (waits.state, desk.serving, desk.heads.waiting()) == (ReleaseState.PENDING, "base", [waits.id])
    assert desk.heads.waiting_in() == [waits.scenario]
    release = await publish.approve(desk, "default", waits.id)
    assert (release.kind, desk.serving, desk.heads.waiting()) == (ReleaseKind.LEARNED, release.id, [])
    assert await publish.approve(desk, "default", waits.id) == release


async def test_manual_keeps_what_is_accepted_and_asks_nobody(desk: Desk) -> None:
    kept = await desk.publish("job_1", policy=Policy.MANUAL)
    assert (kept.state, desk.serving, desk.heads.waiting()) == (ReleaseState.KEPT, "base", [])
    assert (await desk.publish("job_1", policy=Policy.AUTO)).state is ReleaseState.KEPT
    release = await publish.approve(desk, "default", kept.id)
    assert (release.kind, desk.serving) == (ReleaseKind.LEARNED, release.id)


# -- a person's proposals -----------------------------------------------------------------------------

MCP = '{"mcpServers": {"docs": {"command": "docs"}}}'


async def test_a_persons_proposal_waits_for_their_yes(desk: Desk, again: Any) -> None:
    waits = await publish.propose(desk, publish.Proposal("default", {"mcp.json": MCP}, reason="docs at hand"))
    assert (waits.state, waits.recipe, waits.reason, waits.gate) == (ReleaseState.PENDING, PERSON, "docs at hand", None)
    assert "mcp.json" in waits.note
    assert desk.told[-1]["by"] == "person"
    later = again()
    assert later.heads.waiting() == [waits.id]
    release = await publish.approve(later, "default", waits.id)
    assert (release.kind, later.serving, later.heads.waiting()) == (ReleaseKind.UNPROVEN, release.id, [])


async def test_the_same_proposal_is_the_same_candidate(desk: Desk) -> None:
    proposal = publish.Proposal("default", {"rules.md": "Use uv.\n"})
    waits = await publish.propose(desk, proposal)
    assert waits.reason == "changed by a person"
    assert await publish.propose(desk, proposal) == waits
    release = await publish.approve(desk, "default", waits.id)
    assert await publish.propose(desk, replace(proposal, parent="base")) == release
    with pytest.raises(RecipeError, match=f"different from {release.id}"):
        await publish.propose(desk, proposal)
    await publish.rollback(desk, "default", "base")
    assert (await publish.propose(desk, proposal)).id not in (waits.id, release.id)


async def test_a_whole_tree_takes_away_what_it_does_not_name(desk: Desk) -> None:
    head = await desk.publish("job_1", harness={"rules.md": "Use uv.\n", "prompts/plan.md": "Plan.\n"})
    waits = await publish.propose(desk, publish.Proposal("default", {"rules.md": "Use pip.\n"}, whole=True))
    assert desk.releases.files(waits) == {"rules.md": "Use pip.\n"}
    part = await publish.propose(desk, publish.Proposal("default", {"rules.md": "Use pip.\n"}, parent=head.id))
    assert desk.releases.files(part) == {"rules.md": "Use pip.\n", "prompts/plan.md": "Plan.\n"}


async def test_a_recipe_does_not_pass_for_a_person(desk: Desk) -> None:
    forged = replace(candidate("job_1", harness={"mcp.json": MCP}), recipe=PERSON)
    with pytest.raises(RecipeError, match="no recipe is a person"):
        await publish.publish_candidate(desk, forged, ACCEPTED, Policy.AUTO)


# -- held ---------------------------------------------------------------------------------------------


async def test_a_pin_holds_what_is_served_and_not_what_is_released(desk: Desk, again: Any, tmp_path: Path) -> None:
    first = await desk.publish("job_1", weights=write_weights(tmp_path / "a", 1))
    assert await publish.pin(desk, "default", "r1") == first
    second = await desk.publish("job_2", first.id, weights=write_weights(tmp_path / "b", 2))
    for one in (desk, again()):
        assert (one.serving, one.heads.tip("default").release_id) == (first.id, second.id)
        assert one.heads.served("default").lora == one.releases.lora(first)
        assert one.heads.rows()[0]["pinned"] == one.heads.held_at("default") == first.id
    assert await publish.pin(desk, "default", first.id) == replace(first, head=False), "again changes nothing"
    assert await publish.pin(desk, "default", second.id) == second, "forward needs no new release"
    assert desk.serving == second.id
    assert await publish.unpin(desk, "default") == second
    assert (desk.serving, desk.heads.held_at("default"), again().serving) == (second.id, None, second.id)
    assert [row["event"] for row in desk.told if row["event"] != "release"] == [
        "release_pin", "release_pin", "release_pin", "release_unpin",
    ]  # fmt: skip
    with pytest.raises(Conflict, match="is not held"):
        await publish.unpin(desk, "default")


async def test_a_pin_at_an_earlier_release_makes_it_again(desk: Desk, again: Any) -> None:
    """Clients refuse a number lower than one they ran."""
    first = await desk.publish("job_1")
    await desk.publish("job_2", first.id)
    held = await publish.pin(desk, "default", first.id)
    assert (held.number, held.restores, desk.serving) == (3, first.id, held.id)
    after = await desk.publish("job_3", held.id)
    assert (desk.serving, again().serving) == (held.id, held.id)
    back = await publish.rollback(desk, "default")
    assert (back.restores, desk.serving, again().serving) == (held.parent, back.id, back.id)
    assert back.number == after.number + 1


async def test_what_cannot_be_pinned_leaves_all_as_it_is(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await publish.pin(desk, "default", "r1")
    waits = await desk.publish("job_1", policy=Policy.REVIEW)
    with pytest.raises(Conflict):
        await publish.pin(desk, "default", waits.id)
    assert (desk.serving, desk.heads.held_at("default")) == ("base", None)


async def test_a_pin_that_cannot_be_trusted_is_told_and_the_head_serves(desk: Desk, again: Any) -> None:
    first = await desk.publish("job_1")
    other = await desk.publish("job_2", scenario="other")
    ref = desk.releases.path / "refs/reef-pins/default"
    ref.parent.mkdir()
    ref.write_text(f"{other.commit}\n")
    later = again()
    assert later.serving == first.id
    assert "default: its pin is not used" in later.heads.notes()[0]
    assert await publish.unpin(later, "default") == first


async def test_what_the_gate_did_not_accept_is_kept_aside(desk: Desk) -> None:
    for job, verdict in (("job_1", Verdict.REJECT), ("job_2", Verdict.INCONCLUSIVE)):
        kept = await desk.publish(job, gate=judged(verdict))
        assert (kept.state, kept.gate.verdict, desk.serving) == (ReleaseState.REJECTED, verdict, "base")
    assert (await desk.publish("job_3", gate=None)).state is ReleaseState.REJECTED
    assert desk.heads.waiting() == []


async def test_a_person_may_release_what_is_unproven_and_what_is_rejected_by_force(desk: Desk) -> None:
    unproven = await desk.publish("job_1", gate=judged(Verdict.INCONCLUSIVE))
    first = await publish.approve(desk, "default", unproven.id)
    assert first.kind is ReleaseKind.UNPROVEN
    rejected = await desk.publish("job_2", first.id, gate=judged(Verdict.REJECT))
    with pytest.raises(GateRefused, match="the gate rejected") as refused:
        await publish.approve(desk, "default", rejected.id)
    assert refused.value.hint is not None
    assert "--force" in refused.value.hint
    assert desk.serving == first.id
    assert (await publish.approve(desk, "default", rejected.id, force=True)).kind is ReleaseKind.UNPROVEN


async def test_a_stale_candidate_waits_and_says_why(desk: Desk, again: Any) -> None:
    head = await desk.publish("job_1")
    with pytest.raises(Conflict):
        await desk.publish("job_2")
    kept, _ = desk.releases.list("default", states=frozenset({ReleaseState.PENDING}))
    assert kept[0].note.startswith(f"stale: {kept[0].id} was made from base")
    assert (desk.serving, desk.heads.waiting()) == (head.id, [kept[0].id])
    assert await again().publish("job_2") == kept[0], "the same job again changes nothing"
    with pytest.raises(Conflict):
        await publish.approve(desk, "default", kept[0].id)


async def test_of_two_at_once_one_is_released(desk: Desk) -> None:
    done = await asyncio.gather(desk.publish("job_1"), desk.publish("job_2"), return_exceptions=True)
    assert sorted(type(result).__name__ for result in done) == ["Conflict", "Release"]


async def test_a_job_that_was_published_before_a_kill_is_the_same_release(desk: Desk, again: Any) -> None:
    first = await desk.publish("job_1")
    later = again()
    assert later.serving == first.id
    assert await later.publish("job_1") == first
    second = await later.publish("job_2", first.id)
    assert (await later.publish("job_1")).id == first.id
    assert later.serving == second.id


async def test_killed_between_keeping_and_releasing_it_is_released_after(desk: Desk, again: Any) -> None:
    desk.releases.propose(candidate("job_1"), ACCEPTED)
    later = again()
    assert later.heads.waiting() != []
    release = await later.publish("job_1")
    assert (release.number, later.heads.waiting()) == (1, [])


async def test_a_person_turned_it_down_meanwhile(desk: Desk) -> None:
    waits = await desk.publish("job_1", policy=Policy.REVIEW)
    told = await publish.reject(desk, "default", waits.id)
    assert (told.state, desk.told[-1]["note"]) == (ReleaseState.REJECTED, "turned down by a person")
    assert (await desk.publish("job_1")).state is ReleaseState.REJECTED


async def test_rollback_serves_the_old_weights_again(desk: Desk, tmp_path: Path) -> None:
    first = await desk.publish("job_1", weights=write_weights(tmp_path / "a", 1))
    second = await desk.publish("job_2", first.id, weights=write_weights(tmp_path / "b", 2))
    back = await publish.rollback(desk, "default", reason="too terse")
    assert (back.restores, back.parent, desk.serving) == (first.id, second.id, back.id)
    served = desk.heads.served("default").lora
    assert served is not None
    assert first.weights is not None
    assert served.sha256 == first.weights.sha256
    base = await publish.rollback(desk, "default", "base")
    assert (desk.serving, desk.heads.served("default").lora) == (base.id, None)
    short = await publish.rollback(desk, "default", "r2")
    assert short.restores == second.id


async def test_rollback_to_damaged_weights_leaves_the_head(desk: Desk, tmp_path: Path) -> None:
    first = await desk.publish("job_1", weights=write_weights(tmp_path / "a", 1))
    second = await desk.publish("job_2", first.id, weights=write_weights(tmp_path / "b", 2))
    lora = desk.releases.lora(first)
    assert lora is not None
    lora.path.unlink()
    with pytest.raises(BadWeights):
        await publish.rollback(desk, "default")
    assert (desk.serving, desk.releases.head("default")) == (second.id, second)


async def test_rollback_needs_no_working_engine_and_no_fitting_model(desk: Desk, tmp_path: Path) -> None:
    first = await desk.publish("job_1", weights=write_weights(tmp_path / "a", 1))
    await desk.publish("job_2", first.id)

    def missing() -> None:
        raise EngineUnavailable("no engine")

    desk.embedded.on_load = missing
    assert (await publish.rollback(desk, "default")).restores == first.id
    desk.model = None
    assert (await publish.rollback(desk, "default")).number == 4


async def test_rollback_of_nothing_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await publish.rollback(desk, "default")


async def test_the_base_is_read_from_the_weights_own_file(desk: Desk, tmp_path: Path) -> None:
    made = replace(candidate("job_1", weights=write_weights(tmp_path)), base=None)
    with pytest.raises(BadWeights, match="which model"):  # a file that does not say it
        await publish.publish_candidate(desk, made, ACCEPTED, Policy.AUTO)
    (tmp_path / "adapter.gguf").write_bytes(b"no GGUF")
    with pytest.raises(BadWeights, match="cannot be read"):
        await publish.publish_candidate(desk, made, ACCEPTED, Policy.AUTO)


# -- heads --------------------------------------------------------------------------------------------


async def test_after_a_restart_the_same_is_served(desk: Desk, again: Any, tmp_path: Path) -> None:
    await desk.publish("job_1", weights=write_weights(tmp_path))
    later = again()
    assert later.heads.served("default") == desk.heads.served("default")
    assert later.heads.notes() == []
    assert later.heads.rows()[0]["verdict"] == Verdict.ACCEPT


async def test_a_damaged_head_gives_way_to_the_one_before(desk: Desk, again: Any, tmp_path: Path) -> None:
    first = await desk.publish("job_1", weights=write_weights(tmp_path / "a", 1))
    second = await desk.publish("job_2", first.id, weights=write_weights(tmp_path / "b", 2))
    damaged = desk.heads.served("default").lora
    assert damaged is not None
    damaged.path.chmod(0o644)
    damaged.path.write_bytes(damaged.path.read_bytes()[:100])
    later = again()
    assert later.serving == first.id
    assert f"{second.id} is not used: the weights" in later.heads.notes()[0]


async def test_a_store_that_cannot_be_read_stops_nothing(desk: Desk, again: Any, monkeypatch: Any) -> None:
    await desk.publish("job_1")
    monkeypatch.setenv("PATH", "/nowhere")
    later = again()
    assert later.serving == "base"
    assert "git is not installed" in later.heads.notes()[0]


async def test_weights_of_another_model_are_left_out_and_said(desk: Desk, tmp_path: Path) -> None:
    release = await desk.publish("job_1", weights=write_weights(tmp_path))
    served = desk.heads.served("default")
    assert desk.heads.lora(served) == served.lora
    desk.model = ModelFile("other", Path("other.gguf"), 1, "c" * 64, "", "")
    assert (desk.heads.lora(served), desk.serving) == (None, release.id)
    assert "another model than other" in desk.heads.notes()[0]
    desk.model = MODEL
    assert desk.heads.notes() == []


async def test_weights_refused_while_serving_are_left_out_until_the_head_moves(desk: Desk, tmp_path: Path) -> None:
    first = await desk.publish("job_1", weights=write_weights(tmp_path))
    served = desk.heads.served("default")
    desk.heads.unfit("default", served, BadWeights("gone"))
    assert desk.heads.served("default").lora is None
    assert "are not used: gone" in desk.heads.notes()[0]
    await desk.publish("job_2", first.id)
    assert isinstance(desk.heads.served("default").lora, LoraFile)
    assert desk.heads.notes() == []
