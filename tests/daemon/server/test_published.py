"""What the published protocol reads of a scenario: its records and commits page by page, and what it accepts."""

import json
from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Turn, running_provider
from tests.fakes.releases import released

HERE = "/reef/scenarios/work/api/records"


@pytest.fixture(scope="module")
def daemon(module_home: Home) -> Iterator[RunningDaemon]:
    with running_provider((Turn("An answer."),)) as provider:
        config = f'server: {{port: 0}}\nengine: p\nengines: {{p: {{base_url: "{provider.url}/v1"}}}}\n'
        with running_daemon(module_home, config) as running:
            yield running


@pytest.fixture(scope="module")
def receipts(daemon: RunningDaemon) -> list[str]:
    found = []
    for n in range(3):
        body = {"model": "m", "messages": [{"role": "user", "content": f"question {n}"}]}
        found.append(daemon.post("/v1/chat/completions", body, x_reef_scenario="work/api")[1]["x-reef-agent-record-id"])
        daemon.post("/v1/chat/completions", body)
    return found


def test_records_of_a_scenario_are_listed_oldest_first(daemon: RunningDaemon, receipts: list[str]) -> None:
    first = daemon.get(f"{HERE}?limit=2")
    assert [one["agent_record_id"] for one in first["records"]] == receipts[:2]
    assert {one["request_type"] for one in first["records"]} == {"inference"}
    second = daemon.get(f"{HERE}?limit=2&after_sequence={first['next_after_sequence']}")
    assert [one["agent_record_id"] for one in second["records"]] == receipts[2:]
    assert (second["scenario"], second["next_after_sequence"]) == ("work/api", None)
    assert daemon.get("/reef/scenarios/nobody/records")["records"] == []


def test_a_record_has_its_payload_and_can_be_sent_again(daemon: RunningDaemon, receipts: list[str]) -> None:
    found = daemon.get(f"{HERE}/{receipts[0]}")
    assert found["payload"]["messages"] == [{"role": "user", "content": "question 0"}]
    assert found["payload"]["response"]["choices"][0]["message"]["content"] == "An answer."
    assert found["created_at"] == pytest.approx(found["started_ns"] / 1e9)
    copy = {"agent_record_id": "copy_1", "request_type": "inference", "payload": found["payload"]}
    assert daemon.control("POST", "/reef/records", copy)[0] == 200


def test_another_scenarios_record_is_not_found(daemon: RunningDaemon, receipts: list[str]) -> None:
    status, raw = daemon.control("GET", f"/reef/scenarios/other/records/{receipts[0]}")
    assert (status, raw["error"]["kind"]) == (404, "not_found")


@pytest.mark.parametrize("query", ["after_sequence=x", "limit=0", "request_type=report", "after_sequence=%C2%B2"])
def test_what_is_asked_wrongly_is_refused(daemon: RunningDaemon, query: str) -> None:
    assert daemon.control("GET", f"{HERE}?{query}")[0] == 400


def test_an_agents_token_does_not_read_records(daemon: RunningDaemon) -> None:
    response = daemon.open(HERE, b"", method="GET")
    assert (response.status, json.loads(response.read())["error"]["kind"]) == (401, "unauthorised")


def test_commits_are_listed_oldest_first(daemon: RunningDaemon) -> None:
    store, parent = Releases.open(daemon.home), "base"
    for number in range(5):
        parent = released(store, f"job_{number}", parent, scenario="steps").id
    store.rollback("steps", "base")
    here, steps, after = "/reef/scenarios/steps/commits?limit=2", [], 0
    while after is not None:
        page = daemon.get(f"{here}&after_step={after}")
        steps += page["commits"]
        after = page["next_after_step"]
    assert [row["step"] for row in steps] == [1, 2, 3, 4, 5, 6]
    assert {row["operation"] for row in steps[:5]} == {"training"}
    assert (steps[5]["operation"], steps[5]["metrics"]) == ("rollback", None)
    first = steps[0]
    assert (first["consumed_ids"], first["metrics"]["wins"], first["parent"]) == (["rec_1", "rec_2"], 9, "base")
    assert first["recorded_at"] == pytest.approx(daemon.get("/reef/releases/r1?scenario=steps")["created_ns"] / 1e9)
    learned = daemon.get(f"{here}&record_id=rec_2&record_id=rec_9")
    assert [row["step"] for row in learned["commits"]] == [1, 2]
    assert learned["next_after_step"] == 2
    assert daemon.get(f"{here}&record_id=rec_9")["commits"] == []
    assert daemon.get("/reef/scenarios/nobody/commits") == {
        "scenario": "nobody", "commits": [], "next_after_step": None,
    }  # fmt: skip


def test_what_it_accepts(daemon: RunningDaemon, receipts: list[str]) -> None:
    assert daemon.control("GET", "/reef/scenarios/nobody/contract")[0] == 404
    told = daemon.get("/reef/scenarios/work/api/contract")
    assert (told["scenario"], told["recipe"], told["required_request_types"]) == ("work/api", None, ["inference"])
    assert (told["policy"], told["training_mode"], told["tasks"], told["scores"]) == ("auto", "hybrid", 0, None)


def test_what_a_recipe_needs_is_in_the_contract(reef_home: Home) -> None:
    config = (
        "server: {port: 0}\nreef: {recipe: playbook, batch_size: 3}\n"
        "scenarios: {marked: {scores: [1, 5], policy: review}}\n"
    )
    with running_daemon(reef_home, config) as running:
        told = running.get("/reef/scenarios/marked/contract")
    assert (told["recipe"], told["required_request_types"], told["config"]["batch_size"]) == (
        "playbook", ["inference", "report"], 3,
    )  # fmt: skip
    assert (told["scores"], told["policy"], told["status"]) == ([1, 5], "review", {"problem": None})


def test_a_recipe_that_cannot_run_is_said_in_the_contract(reef_home: Home) -> None:
    with running_daemon(reef_home, "server: {port: 0}\nreef: {recipe: 'no.such:Recipe'}\n") as running:
        told = running.get("/reef/scenarios/default/contract")
    assert told["recipe"] == "no.such:Recipe"
    assert "no module" in told["status"]["problem"]


@pytest.mark.parametrize(
    "query", ["after_step=x", "limit=0", "&".join(f"record_id={n}" for n in range(101)), "after_step=-1"]
)
def test_commits_asked_wrongly_are_refused(daemon: RunningDaemon, query: str) -> None:
    assert daemon.control("GET", f"/reef/scenarios/steps/commits?{query}")[0] == 400
