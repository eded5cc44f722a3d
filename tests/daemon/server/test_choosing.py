"""Scenarios made, changed and removed over HTTP, on a real daemon, restarts included."""

import json
from pathlib import Path
from typing import Any

import pytest

from adapters import active
from adapters.active import Active
from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.releases import ACCEPTED, candidate, released

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def listed(daemon: RunningDaemon) -> dict[str, Any]:
    page = daemon.get("/reef/scenarios")
    assert page["items"] == page["scenarios"]
    return {row["name"]: row for row in page["items"]}


def test_made_once_listed_and_there_after_a_restart(reef_home: Home) -> None:
    with running_daemon(reef_home) as daemon:
        status, told = daemon.control("POST", "/reef/scenarios", {"name": "work/api", "policy": "review"})
        assert (status, told["scenario"], told["release_id"], told["policy"]) == (201, "work/api", "base", "review")
        status, again = daemon.control("POST", "/reef/scenarios", {"name": " work/api ", "release_id": "base"})
        assert (status, again) == (200, told)
    with running_daemon(reef_home) as daemon:
        assert listed(daemon)["work/api"] == told
        assert listed(daemon)["default"]["policy"] == "auto"
        status, told = daemon.control("POST", "/reef/scenarios/work/api/update", {"policy": None})
        assert (status, told["policy"]) == (200, "auto")


def test_one_that_is_configured_is_listed_and_stays(reef_home: Home) -> None:
    with running_daemon(reef_home, "server: {port: 0}\nscenarios: {work: {policy: review}}\n") as daemon:
        assert listed(daemon)["work"]["policy"] == "review"
        status, told = daemon.control("DELETE", "/reef/scenarios/work")
        assert (status, str(reef_home.config) in told["error"]["hint"]) == (409, True)
        assert daemon.control("POST", "/reef/scenarios/work/update", {"policy": "manual"})[1]["policy"] == "manual"


def test_one_that_is_used_is_listed(daemon: RunningDaemon) -> None:
    assert "used" not in listed(daemon)
    assert daemon.post("/v1/chat/completions", HELLO, x_reef_scenario="used")[0] == 200
    assert listed(daemon)["used"]["release_id"] == "base"


def test_removed_its_releases_stay_in_git_and_its_records_with_it(daemon: RunningDaemon) -> None:
    store = Releases.open(daemon.home)
    waits = store.propose(candidate("job_1", scenario="gone"), ACCEPTED)
    daemon.control("POST", "/reef/scenarios/gone/promote", {"release_id": waits.id})
    _, headers, _ = daemon.post("/v1/chat/completions", HELLO, x_reef_scenario="gone")
    assert headers["x-reef-release-id"] != "base"
    status, told = daemon.control("DELETE", "/reef/scenarios/gone")
    assert (status, told["scenario"], told["removed"]) == (200, "gone", True)
    assert told["archived"].startswith("refs/reef-archive/gone/")
    assert "gone" not in listed(daemon)
    assert daemon.get("/reef/releases?scenario=gone&state=all")["items"] == []
    assert daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")["scenario"] == "gone"
    entry = next(row for row in daemon.get("/reef/audit")["items"] if row["event"] == "scenario_removed")
    assert entry["facts"] == {"scenario": "gone", "archived": told["archived"]}
    assert daemon.control("DELETE", "/reef/scenarios/gone")[0] == 404


def test_a_removed_one_that_is_used_again_starts_from_the_base(daemon: RunningDaemon) -> None:
    released(Releases.open(daemon.home), "job_b1", scenario="back")
    assert daemon.control("DELETE", "/reef/scenarios/back")[0] == 200
    _, headers, _ = daemon.post("/v1/chat/completions", HELLO, x_reef_scenario="back")
    assert headers["x-reef-release-id"] == "base"
    assert listed(daemon)["back"]["number"] == 0


def test_an_agent_that_ran_a_removed_one_takes_the_next_of_its_name(daemon: RunningDaemon) -> None:
    daemon.control("POST", "/reef/scenarios", {"name": "again"})
    path = daemon.home.agents / "codex" / "active.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    active.save(path, "again", Active("r1-00000000", 1, {}))
    assert daemon.control("DELETE", "/reef/scenarios/again")[0] == 200
    assert active.load(path, "again") is None


@pytest.mark.parametrize(("agent", "command"), [("claude-code", "reef-claude"), ("gone", "gone")])
def test_an_agent_that_runs_it_is_named_as_a_person_calls_it(daemon: RunningDaemon, agent: str, command: str) -> None:
    daemon.control("POST", "/reef/scenarios", {"name": agent})
    install(daemon, agent, agent)
    said = {"kind": "conflict", "message": f"{command} runs '{agent}'"}
    status, told = daemon.control("DELETE", f"/reef/scenarios/{agent}")
    assert (status, told["error"]) == (
        409, {**said, "hint": f"reef harness install --adapter {agent} --scenario OTHER"},
    )  # fmt: skip


def install(daemon: RunningDaemon, agent: str, scenario: str) -> Path:
    place = daemon.home.agents / agent
    place.mkdir()
    (place / "install.json").write_text(json.dumps({"scenario": scenario}))
    return place


def test_what_still_goes_by_it_keeps_it(daemon: RunningDaemon) -> None:
    place = install(daemon, "pi", "wrapped")
    for name in ("wrapped", "default"):
        daemon.control("POST", "/reef/scenarios", {"name": name})
        status, told = daemon.control("DELETE", f"/reef/scenarios/{name}")
        assert (status, told["error"]["kind"]) == (409, "conflict")
    (place / "install.json").write_text("not JSON")
    assert daemon.control("DELETE", "/reef/scenarios/wrapped")[0] == 200


def test_not_while_a_job_runs_for_it(daemon: RunningDaemon) -> None:
    _, job = daemon.control("POST", "/reef/jobs", {"recipe": "playbook", "scenario": "busy"})
    daemon.control("POST", "/reef/scenarios", {"name": "busy"})
    status, told = daemon.control("DELETE", "/reef/scenarios/busy")
    if daemon.get(f"/reef/jobs/{job['id']}")["state"] in ("queued", "running"):
        assert (status, told["error"]["hint"]) == (409, f"reef jobs cancel {job['id']}")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "", {}, 400),
        ("POST", "", {"name": 3}, 400),
        ("POST", "", {"name": "../x"}, 400),
        ("POST", "", {"name": "x", "odd": 1}, 400),
        ("POST", "", {"name": "x", "release_id": "r5-00000000"}, 409),
        ("POST", "", {"name": "x", "model": {"url": "http://evil.example"}}, 400),
        ("POST", "", {"name": "x", "policy": "whenever"}, 400),
        ("POST", "/default/update", {"model": {"url": "http://evil.example"}}, 400),
        ("POST", "/default/update", {}, 400),
        ("POST", "/default/update", {"training_mode": "never"}, 400),
        ("POST", "/default/update", {"policy": ["auto"]}, 400),
        ("POST", "/nobody/update", {"policy": "auto"}, 404),
        ("DELETE", "/nobody", None, 404),
    ],
)
def test_what_cannot_be_done_is_said(daemon: RunningDaemon, method: str, path: str, body: object, status: int) -> None:
    before = listed(daemon)
    found, told = daemon.control(method, f"/reef/scenarios{path}", body)
    assert (found, set(told["error"])) == (status, {"kind", "message", "hint"})
    assert listed(daemon) == before


def test_an_agent_makes_and_removes_none(daemon: RunningDaemon) -> None:
    for method, path in (("POST", "/reef/scenarios"), ("POST", "/reef/scenarios/default/update"),
                         ("DELETE", "/reef/scenarios/used")):  # fmt: skip
        response = daemon.open(path, {"name": "x", "policy": "auto"}, method=method)
        response.read()
        assert response.status == 401
