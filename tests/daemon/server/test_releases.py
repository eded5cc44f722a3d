"""Releases over HTTP, on a real daemon whose store another process has put candidates into."""

import json
from dataclasses import replace
from typing import Any

import pytest

from daemon.core import sshsig
from daemon.core.paths import Home
from daemon.core.releases import PERSON, ReleaseState, Verdict
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Provider
from tests.fakes.releases import ACCEPTED, candidate, judged, released


def ask(daemon: RunningDaemon, scenario: str) -> str:
    """The release that an agent's request of that scenario is told it was served by."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    status, headers, raw = daemon.post("/v1/chat/completions", body, x_reef_scenario=scenario)
    assert status == 200, raw
    record = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert record["release_id"] == headers["x-reef-release-id"]
    return headers["x-reef-release-id"]


def approve(daemon: RunningDaemon, id: str, scenario: str, **fields: object) -> tuple[int, Any]:
    return daemon.control("POST", f"/reef/releases/{id}/approve", {"scenario": scenario, **fields})


def test_nothing_is_released_at_first(daemon: RunningDaemon) -> None:
    assert daemon.get("/reef/releases?scenario=none") == {"items": [], "next": None, "pinned": None}
    assert ask(daemon, "none") == "base"
    assert daemon.home.release_key.stat().st_mode & 0o777 == 0o600


def test_an_approved_candidate_serves_the_next_request(daemon: RunningDaemon, store: Releases) -> None:
    waits = store.propose(candidate("job_a1", scenario="a"), ACCEPTED)
    assert ask(daemon, "a") == "base"
    listed = daemon.get("/reef/releases?scenario=a&state=pending")["items"]
    assert [(row["id"], row["state"]) for row in listed] == [(waits.id, "pending")]
    status, release = approve(daemon, waits.id, "a")
    assert (status, release["number"], release["head"]) == (200, 1, True)
    assert ask(daemon, "a") == release["id"]
    assert ask(daemon, "b") == "base"
    assert store.head("a") == store.get("a", release["id"])


def test_one_release_is_told_whole(daemon: RunningDaemon, store: Releases) -> None:
    release = released(store, "job_w1", scenario="whole")
    told = daemon.get(f"/reef/releases/{release.id}?scenario=whole")
    assert told["files_text"] == {"rules.md": "- rule of job_w1\n"}
    assert told["gate"]["pairs"][0]["candidate_answer"] == "Hi."
    assert told["gate"]["verdict"] == "accept"
    assert told["card"].startswith("verdict   accepted: 9 better, 1 worse of 12\n")
    assert told["clone"][0].startswith("git clone --branch whole file:///")
    row = daemon.get("/reef/releases?scenario=whole")["items"][0]
    assert "pairs" not in row["gate"]
    assert daemon.get(f"/reef/releases/{release.id}/diff?scenario=whole")["diff"].endswith("+- rule of job_w1\n")
    assert daemon.get("/reef/releases/r1?scenario=whole")["id"] == release.id


def test_lists_are_cursored(daemon: RunningDaemon, store: Releases) -> None:
    parent = "base"
    for number in range(5):
        parent = released(store, f"job_l{number}", parent, scenario="long").id
    store.propose(candidate("job_l9", parent, scenario="long"), judged(Verdict.REJECT), ReleaseState.REJECTED)
    for state, expected in (("released", [5, 4, 3, 2, 1]), ("all", [0, 5, 4, 3, 2, 1]), ("rejected", [0])):
        numbers: list[int] = []
        cursor: str | None = ""
        while cursor is not None:
            page = daemon.get(f"/reef/releases?scenario=long&limit=2&state={state}{cursor}")
            assert len(page["items"]) <= 2
            numbers += [row["number"] for row in page["items"]]
            cursor = f"&before={page['next']}" if page["next"] else None
        assert numbers == expected


def test_the_gates_no_needs_force(daemon: RunningDaemon, store: Releases) -> None:
    waits = store.propose(candidate("job_g1", scenario="g"), judged(Verdict.REJECT), ReleaseState.REJECTED)
    status, told = approve(daemon, waits.id, "g")
    assert (status, told["error"]["kind"]) == (409, "gate")
    status, release = approve(daemon, waits.id, "g", force=True)
    assert (status, release["kind"]) == (200, "unproven")


def test_a_stale_candidate_is_a_conflict(daemon: RunningDaemon, store: Releases) -> None:
    late = store.propose(candidate("job_s1", scenario="s"), ACCEPTED)
    released(store, "job_s2", scenario="s")
    status, told = approve(daemon, late.id, "s")
    assert (status, told["error"]["kind"]) == (409, "conflict")


def test_reject_and_rollback(daemon: RunningDaemon, store: Releases) -> None:
    first = store.propose(candidate("job_r1", scenario="r"), ACCEPTED)
    _, head = approve(daemon, first.id, "r")
    waits = store.propose(candidate("job_r2", head["id"], scenario="r"), ACCEPTED)
    status, told = daemon.control("POST", f"/reef/releases/{waits.id}/reject", {"scenario": "r"})
    assert (status, told["state"]) == (200, "rejected")
    body = {"scenario": "r", "reason": "no good"}
    status, back = daemon.control("POST", "/reef/releases/rollback", body)
    assert (status, back["restores"], back["reason"]) == (200, "base", "no good")
    assert ask(daemon, "r") == back["id"]


def test_the_published_protocols_names(daemon: RunningDaemon, store: Releases) -> None:
    waits = store.propose(candidate("job_p1", scenario="team/api"), ACCEPTED)
    status, first = daemon.control("POST", "/reef/scenarios/team/api/promote", {"release_id": waits.id})
    assert (status, first["number"]) == (200, 1)
    scenarios = {row["name"]: row["release_id"] for row in daemon.get("/reef/scenarios")["items"]}
    assert (scenarios["team/api"], scenarios["default"]) == (first["id"], "base")
    assert [row["id"] for row in daemon.get("/reef/scenarios/team/api/releases")["items"]] == [first["id"]]
    status, back = daemon.control("POST", "/reef/scenarios/team/api/rollback", {"release_id": "base"})
    assert (status, back["restores"]) == (200, "base")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/reef/releases?state=odd", None, 400),
        ("GET", "/reef/releases?before=x", None, 400),
        ("GET", "/reef/releases?before=99999999999999999999999", None, 400),
        ("GET", "/reef/releases?limit=0", None, 400),
        ("GET", "/reef/releases?scenario=..%2fx", None, 400),
        ("GET", "/reef/releases/r9-00000000", None, 404),
        ("GET", "/reef/releases/..%2f..%2fHEAD", None, 404),
        ("GET", "/reef/releases/--help/diff", None, 404),
        ("GET", "/reef/releases/r1/diff?against=--output=x", None, 404),
        ("POST", "/reef/releases/r9-00000000/approve", {"force": "yes"}, 400),
        ("POST", "/reef/releases/r9-00000000/reject", {}, 404),
        ("POST", "/reef/releases/rollback", {"to": 3}, 400),
        ("POST", "/reef/releases/pin", {}, 400),
        ("POST", "/reef/releases/pin", {"release": "r1", "scenario": "empty"}, 404),
        ("POST", "/reef/releases/rollback", {"scenario": 3}, 400),
        ("POST", "/reef/releases/rollback", {"scenario": "empty"}, 404),
        ("POST", "/reef/scenarios/default/promote", {}, 400),
        ("POST", "/reef/scenarios/default/promote", {"release_id": 1}, 404),
    ],
)
def test_what_cannot_be_done_is_said(daemon: RunningDaemon, method: str, path: str, body: object, status: int) -> None:
    found, told = daemon.control(method, path, body)
    assert (found, set(told["error"])) == (status, {"kind", "message", "hint"})


def test_an_agents_token_reads_and_moves_no_release(daemon: RunningDaemon) -> None:
    posts = [("POST", f"/reef/releases/{verb}") for verb in ("rollback", "pin", "unpin", "r0-00000000/approve")]
    for method, path in (("GET", "/reef/releases"), ("GET", "/reef/scenarios"), *posts):
        response = daemon.open(path, {}, method=method)
        response.read()
        assert response.status == 401


def test_watchers_are_told_of_a_release(daemon: RunningDaemon, store: Releases) -> None:
    waits = store.propose(candidate("job_e1", scenario="events"), ACCEPTED)
    token = {"authorization": f"Bearer {daemon.control_token}"}
    stream = daemon.open("/reef/events", b"", method="GET", headers=token)
    assert stream.readline() == b": reef\n"
    _, release = approve(daemon, waits.id, "events")
    line = b""
    while line != b"event: release\n":
        line = stream.readline()
        assert line
    told = json.loads(stream.readline().removeprefix(b"data: "))
    assert (told["id"], told["scenario"]) == (release["id"], "events")
    assert "pairs" not in told["gate"]
    stream.close()


def test_a_release_is_in_the_audit_log_by_its_ids(daemon: RunningDaemon, store: Releases) -> None:
    waits = store.propose(candidate("job_a1", scenario="audited"), ACCEPTED)
    _, release = approve(daemon, waits.id, "audited")

    (entry,) = audited(daemon, "audited")
    assert entry["event"] == "release"
    assert (entry["state"], entry["commit"], entry["by"]) == ("released", release["commit"], "person")
    assert "reason" not in entry


def audited(daemon: RunningDaemon, scenario: str) -> list[dict[str, Any]]:
    """What the log says of a scenario's releases now, newest first."""
    rows = daemon.get("/reef/audit?limit=200")["items"]
    return [
        {"event": row["event"], **row["facts"]}
        for row in rows
        if row["event"].startswith("release") and row["facts"]["scenario"] == scenario
    ]


def test_whatever_a_person_decides_is_in_the_log_before_the_answer(daemon: RunningDaemon, store: Releases) -> None:
    first = store.propose(candidate("job_w1", scenario="log"), ACCEPTED)
    second = store.propose(candidate("job_w2", scenario="log"), ACCEPTED)
    steps = (
        (f"{first.id}/approve", "release", "released"),
        (f"{second.id}/reject", "release", "rejected"),
        ("pin", "release_pin", "released"),
        ("unpin", "release_unpin", "released"),
        ("rollback", "release", "released"),
    )
    for count, (path, event, state) in enumerate(steps, 1):
        status, told = daemon.control("POST", f"/reef/releases/{path}", {"scenario": "log", "release": "r1"})
        assert status == 200, told
        entries = audited(daemon, "log")
        newest = entries[0]
        assert (len(entries), newest["event"], newest["state"], newest["by"]) == (count, event, state, "person")
    assert daemon.get("/reef/audit/check")["wrong"] is None


def test_a_release_that_a_killed_daemon_did_not_log_is_logged_at_the_next_start(
    reef_home: Home, provider: Provider
) -> None:
    store = Releases.open(reef_home)
    first = released(store, "job_1")
    with running_daemon(reef_home, provider.config()) as daemon:
        assert [row["id"] for row in audited(daemon, "default")] == [first.id]
        second = released(store, "job_2", first.id)  # as if it had been killed before it wrote
        daemon.kill()
    for _ in range(2):
        with running_daemon(reef_home, provider.config()) as daemon:
            assert [(row["id"], row["by"]) for row in audited(daemon, "default")] == [
                (second.id, "unknown"), (first.id, "unknown"),
            ]  # fmt: skip


def test_a_pin_holds_requests_status_and_what_clients_get(daemon: RunningDaemon, store: Releases) -> None:
    first = store.propose(candidate("job_h1", scenario="hold"), ACCEPTED)
    _, head = approve(daemon, first.id, "hold")
    status, told = daemon.control("POST", "/reef/releases/pin", {"scenario": "hold", "release": "r1"})
    assert (status, told["id"]) == (200, head["id"])
    _, second = approve(daemon, store.propose(candidate("job_h2", head["id"], scenario="hold"), ACCEPTED).id, "hold")
    assert (ask(daemon, "hold"), daemon.get("/reef/harness?scenario=hold")["release_id"]) == (head["id"], head["id"])
    assert daemon.get("/reef/harness/releases?scenario=hold&after=0")[0]["release_id"] == head["id"]
    assert daemon.get("/reef/releases?scenario=hold")["pinned"] == head["id"]
    assert daemon.get(f"/reef/releases/{head['id']}?scenario=hold")["pinned"]
    row = next(row for row in daemon.get("/reef/status")["releases"] if row["scenario"] == "hold")
    assert (row["release_id"], row["pinned"]) == (second["id"], head["id"])
    status, told = daemon.control("POST", "/reef/releases/unpin", {"scenario": "hold"})
    assert (status, told["id"], ask(daemon, "hold")) == (200, second["id"], second["id"])
    assert daemon.get("/reef/harness/releases?scenario=hold&after=1")[0]["release_id"] == second["id"]
    assert daemon.control("POST", "/reef/releases/unpin", {"scenario": "empty"})[0] == 409


def test_a_releases_routing_chooses_the_model(daemon: RunningDaemon, store: Releases, provider: Provider) -> None:
    made = replace(candidate("person-r", scenario="routed", harness={}), recipe=PERSON, routing={"m": "other-model"})
    waits = store.propose(made, None)
    _, release = approve(daemon, waits.id, "routed")
    assert ask(daemon, "routed") == release["id"]
    assert provider.requests[-1].json()["model"] == "other-model"
    ask(daemon, "unrouted")
    assert provider.requests[-1].json()["model"] == "m"
    assert daemon.get(f"/reef/releases/{release['id']}?scenario=routed")["routing"] == {"m": "other-model"}
    daemon.control("POST", "/reef/releases/rollback", {"scenario": "routed"})
    ask(daemon, "routed")
    assert provider.requests[-1].json()["model"] == "m"


def test_what_can_act_waits_for_a_person_who_is_not_the_agent(daemon: RunningDaemon, store: Releases) -> None:
    harness = {"mcp.json": '{"mcpServers": {"a": {"command": "a"}}}'}
    waits = store.propose(replace(candidate("person-1", scenario="acts", harness=harness), recipe=PERSON), None)
    told = daemon.get(f"/reef/releases/{waits.id}?scenario=acts")
    assert told["acts"] == told["note"] == "it changes what can act by itself: mcp.json"
    for verb in ("approve", "reject"):
        refused = daemon.open(f"/reef/releases/{waits.id}/{verb}", {"scenario": "acts"})
        refused.read()
        assert refused.status == 401
    status, release = approve(daemon, waits.id, "acts")
    assert (status, release["kind"], ask(daemon, "acts")) == (200, "unproven", release["id"])


def test_status_tells_heads_and_what_waits(daemon: RunningDaemon, store: Releases) -> None:
    waits = store.propose(candidate("job_t1", scenario="t"), ACCEPTED)
    _, release = approve(daemon, waits.id, "t")
    head = daemon.get("/reef/status")["releases"][0]
    assert (head["scenario"], head["release_id"], head["verdict"]) == ("t", release["id"], "accept")


def test_after_kill_9_the_same_heads_serve_and_a_forged_one_does_not(reef_home: Home, provider: Provider) -> None:
    store = Releases.open(reef_home)
    first = released(store, "job_1")
    second = released(store, "job_2", first.id)
    with running_daemon(reef_home, provider.config()) as daemon:
        assert ask(daemon, "default") == second.id
        daemon.kill()
    (reef_home.releases / "refs/reef/default").write_text(f"{first.commit}\n")
    with running_daemon(reef_home, provider.config()) as daemon:
        assert ask(daemon, "default") == second.id
        assert "the chain ends before release 2" in daemon.get("/reef/status")["notes"][0]
        until(lambda: "the chain ends before release 2" in daemon.log(), "the warning")


def test_a_client_can_check_what_it_gets(store: Releases) -> None:
    release = released(store, "job_c1", scenario="c")
    raw, signature = store.manifest(release)
    sshsig.verify_manifest(raw, signature, store.allowed)
    assert json.loads(raw)["files"] == dict(release.files)
