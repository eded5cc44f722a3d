"""A scenario's records, page by page, as readers of the published protocol expect them."""

import json
from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Turn, running_provider

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
