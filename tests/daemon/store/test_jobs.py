"""Jobs and what they use up: durable, atomic, once; and that a store made before learning goes on with its data."""

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Conflict, NotFound, UsageError
from daemon.core.learning import JobRow, JobState, Outcome, Progress
from daemon.core.rows import NewReport
from daemon.store.db import Store
from daemon.store.experience import Wanted
from daemon.store.instructions import NewInstruction
from daemon.store.jobs import Claim, NewJob, Stand
from tests.daemon.store.older import downgraded
from tests.fakes.exchanges import record, transcript, user

COVERS = ("daemon/store/learning.py",)


def made(store: Store, id: str = "job_a", recipe: str = "sft", scenario: str = "default") -> JobRow:
    return store.learning.create(NewJob(id, scenario, recipe, {"batch_size": 2})).result(20)


def changed(store: Store, id: str, **changes: Any) -> JobRow:
    return store.learning.change(id, **changes).result(20)


def said(store: Store, text: str, **changes: Any) -> str:
    return record(store, transcript([user(text)], "ok"), **changes).receipt


def instruct(store: Store, id: str = "ins_a", text: str = "be brief", **changes: Any) -> bool:
    return store.learning.instruct(NewInstruction(id, "default", text, **changes)).result(20)[1]


def test_a_job_is_kept_as_it_was_made(store: Store) -> None:
    row = made(store)
    assert (row.state, row.scenario, row.recipe, row.config) == (JobState.QUEUED, "default", "sft", {"batch_size": 2})
    assert store.learning.job("job_a") == row
    assert store.learning.open_jobs() == [row]


def test_a_job_changes_until_it_is_over(store: Store) -> None:
    made(store)
    changed(store, "job_a", state=JobState.RUNNING, started_ns=5, attempts=1, mark="m", stalled=2)
    row = changed(store, "job_a", progress=Progress("grow", 1, 3, "epoch"), message="learning")
    assert (row.state, row.progress, row.message) == (JobState.RUNNING, Progress("grow", 1, 3, "epoch"), "learning")
    assert store.learning.stand("job_a") == Stand("m", 2)
    over = changed(store, "job_a", state=JobState.DONE, outcome=Outcome.RELEASED, release_id="r1-ab", ended_ns=9)
    assert (over.outcome, over.release_id) == (Outcome.RELEASED, "r1-ab")
    with pytest.raises(Conflict, match="job_a is done"):
        changed(store, "job_a", state=JobState.RUNNING)
    assert store.learning.open_jobs() == []


def test_jobs_are_listed_newest_first_by_pages(store: Store) -> None:
    for n in range(5):
        made(store, f"job_{n}", scenario="work" if n % 2 else "default")
    first, cursor = store.learning.jobs(limit=3)
    rest, end = store.learning.jobs(limit=3, before=cursor)
    assert [row.id for row in first + rest] == [f"job_{n}" for n in (4, 3, 2, 1, 0)]
    assert end is None
    assert [row.id for row in store.learning.jobs(scenario="work")[0]] == ["job_3", "job_1"]
    assert store.learning.jobs(scenario="nobody")[0] == []


def test_what_nobody_made_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="job_x"):
        store.learning.job("job_x")
    with pytest.raises(NotFound):
        changed(store, "job_x", message="?")
    with pytest.raises(NotFound):
        store.learning.claim("job_x", Claim()).result(20)


def test_a_claim_is_all_or_nothing(store: Store) -> None:
    one, two = said(store, "one"), said(store, "two")
    made(store), made(store, "job_b")
    assert store.learning.claim("job_a", Claim(records=(one,))).result(20).records == 1
    with pytest.raises(Conflict, match="claimed by job_a"):
        store.learning.claim("job_b", Claim(records=(two, one))).result(20)
    assert store.learning.job("job_b").records == 0
    assert store.learning.claim("job_a", Claim(records=(one, two))).result(20).records == 2, "its own again, and more"


def test_another_recipe_may_use_the_same(store: Store) -> None:
    one = said(store, "one")
    made(store), made(store, "job_b", recipe="playbook")
    for job in ("job_a", "job_b"):
        store.learning.claim(job, Claim(records=(one,))).result(20)


def test_an_instruction_is_used_by_one_job_of_any_recipe(store: Store) -> None:
    instruct(store)
    instruct(store, "ins, b")
    made(store), made(store, "job_b", recipe="playbook")
    row = store.learning.claim("job_a", Claim(instructions=("ins_a", "ins, b"))).result(20)
    assert row.instructions == ("ins_a", "ins, b")
    with pytest.raises(Conflict):
        store.learning.claim("job_b", Claim(instructions=("ins_a",))).result(20)
    assert store.learning.instructions("default", "playbook") == []
    assert [i.job for i in store.learning.instructions("default", "sft", "job_a")] == ["job_a", "job_a"]


def test_instructions_for_a_recipe_are_not_another_s(store: Store) -> None:
    instruct(store, "ins_a", recipe="sft"), instruct(store, "ins_b", text="anyone")
    assert [i.id for i in store.learning.instructions("default", "playbook")] == ["ins_b"]
    assert [i.id for i in store.learning.instructions("default", "sft")] == ["ins_a", "ins_b"]
    made(store, "job_p", recipe="playbook")
    with pytest.raises(UsageError, match="'ins_a' is for sft"):
        store.learning.claim("job_p", Claim(instructions=("ins_b", "ins_a"))).result(20)
    assert store.learning.instructions("default", "sft", None)[1].job is None, "all or nothing"
    made(store, "job_s")
    assert store.learning.claim("job_s", Claim(instructions=("ins_a", "ins_b"))).result(20).instructions == (
        "ins_a",
        "ins_b",
    )


def test_instructions_that_no_job_was_made_for(store: Store) -> None:
    instruct(store, "ins_a", recipe="sft"), instruct(store, "ins_b", recipe="playbook", text="b")
    assert sorted(store.learning.unheeded()) == [("default", "playbook"), ("default", "sft")]
    made(store)
    assert store.learning.unheeded() == [("default", "playbook")]


def test_an_instruction_sent_twice_is_one(store: Store) -> None:
    assert instruct(store)
    assert not instruct(store)
    with pytest.raises(Conflict, match="ins_a"):
        instruct(store, text="something else")


def test_an_instruction_is_redacted(store: Store) -> None:
    instruct(store, text="use the key sk-ant-REDACTED")
    (kept,) = store.learning.instructions("default", "sft")
    assert "AAAA" not in kept.text


def test_only_what_may_train_can_be_claimed(store: Store) -> None:
    secret = record(store, transcript([user("x")], "ok", redacted=1)).receipt
    elsewhere = said(store, "y", scenario="work")
    made(store)
    with pytest.raises(UsageError, match="may not train"):
        store.learning.claim("job_a", Claim(records=(secret,))).result(20)
    with pytest.raises(NotFound, match="no record"):
        store.learning.claim("job_a", Claim(records=(elsewhere,))).result(20)
    with pytest.raises(NotFound, match="no report"):
        store.learning.claim("job_a", Claim(reports=("rep_x",))).result(20)


def test_the_same_prompt_and_answer_is_one_thing_to_claim(store: Store) -> None:
    one, again = said(store, "same"), said(store, "same")
    made(store), made(store, "job_b")
    store.learning.claim("job_a", Claim(records=(one,))).result(20)
    with pytest.raises(Conflict):
        store.learning.claim("job_b", Claim(records=(again,))).result(20)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_a_run_that_came_to_nothing_uses_nothing_up(store: Store, state: JobState) -> None:
    one = said(store, "one")
    report, _ = store.report(NewReport("rep_a", "default", score=1.0, references=(one,))).result(20)
    made(store)
    wanted = Claim(records=(one,), reports=(report.id,))
    store.learning.claim("job_a", wanted).result(20)
    assert store.learning.claimed("job_a") == wanted
    changed(store, "job_a", state=state)
    assert store.learning.claimed("job_a") == Claim()
    made(store, "job_b")
    store.learning.claim("job_b", wanted).result(20)
    changed(store, "job_b", state=JobState.DONE)
    assert store.learning.claimed("job_b") == wanted, "what was learned from stays used"


def test_a_job_that_is_over_claims_nothing(store: Store) -> None:
    one = said(store, "one")
    made(store)
    changed(store, "job_a", state=JobState.CANCELLED)
    with pytest.raises(Conflict, match="cancelled"):
        store.learning.claim("job_a", Claim(records=(one,))).result(20)


def test_of_many_who_claim_at_once_one_gets_it(store: Store) -> None:
    one = said(store, "one")
    for n in range(8):
        made(store, f"job_{n}")

    def attempt(n: int) -> bool:
        future: Future[JobRow] = store.learning.claim(f"job_{n}", Claim(records=(one,)))
        return future.exception(20) is None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1


def test_a_store_from_before_learning_goes_on_with_its_data(path: Path) -> None:
    old = Store.open(path, durability="normal")
    receipts = [said(old, f"q{n}") for n in range(3)]
    old.report(NewReport("rep_a", "default", feedback="hm", references=(receipts[0],))).result(20)
    old.close()
    downgraded(path, 1)
    version = sqlite3.connect(path).execute("PRAGMA user_version").fetchone()
    assert version == (1,)
    store = Store.open(path, durability="normal")
    try:
        assert store.verify() == []
        found, _ = store.learning.page(Wanted("default", "sft"), lambda _: True)
        assert [raw.receipt for raw in found] == receipts
        assert found[0].feedback[0].text == "hm"
        made(store)
        assert store.learning.claim("job_a", Claim(records=(receipts[0],))).result(20).records == 1
    finally:
        store.close()
