"""Forgetting over HTTP: a plan, then progress and what went; and the log that says so."""

import json
from typing import Any

import pytest

from tests.fakes.daemon import RunningDaemon, until
from tests.fakes.provider import Turn

CHAT = "/v1/chat/completions"


TURNS = (Turn("Certainly."),)


def say(daemon: RunningDaemon, text: str, **headers: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    status, told, raw = daemon.post(CHAT, body, **headers)
    assert status == 200, raw
    return told["x-reef-agent-record-id"]


def lines(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw.splitlines()]


def entries(daemon: RunningDaemon, event: str) -> list[dict[str, Any]]:
    return [row["facts"] for row in daemon.get("/reef/audit?limit=200")["items"] if row["event"] == event]


def test_a_dry_run_says_what_would_go_and_leaves_it(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "stay for now")
    status, told = daemon.control("POST", "/reef/purge", {"receipts": [receipt], "dry_run": True})
    assert (status, told["purged"]["records"], told["purged"]["sessions"]) == (200, 1, 1)
    assert daemon.get(f"/reef/records/{receipt}")["receipt"] == receipt


def test_what_was_forgotten_is_in_no_file_of_the_home(daemon: RunningDaemon) -> None:
    """Database, its log, the daemon's log, jobs."""
    word = "xylophone8421"
    receipt = say(daemon, word)
    before = daemon.get(f"/reef/records/{receipt}")["seq"]
    daemon.control("POST", "/reef/report", {"feedback": f"more {word}", "references": [receipt]})
    session = daemon.get(f"/reef/records/{receipt}")["session"]
    until(lambda: daemon.get(f"/reef/search?q={word}")["items"], "the index")
    status, raw = daemon.control("POST", "/reef/purge", {"sessions": [session]})
    assert status == 200
    *steps, last = lines(raw)
    assert {"records", "messages", "index"} <= {step["phase"] for step in steps}
    assert (last["purged"]["records"], last["purged"]["reports"], last["purged"]["compacted"]) == (1, 1, True)
    home = daemon.home.root
    found = [path for path in home.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
    assert found == []
    assert daemon.get(f"/reef/search?q={word}")["items"] == []
    assert entries(daemon, "purge")[0]["named"] == [session]
    assert word.encode() not in events_since(daemon, before)
    assert daemon.get("/reef/audit/check")["wrong"] is None


def events_since(daemon: RunningDaemon, seq: int) -> bytes:
    """All that a reader is told who was there in another run, up to the engines' state."""
    control = {"authorization": f"Bearer {daemon.control_token}", "last-event-id": f"{seq}.00000000.0"}
    response = daemon.open("/reef/events", b"", method="GET", headers=control)
    told = b""
    while b"event: engine" not in told:
        told += response.readline()
    response.close()
    assert b"event: missed" in told
    return told


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "nothing says what"),
        ({"session": ["x"]}, "unknown field 'session'"),
        ({"sessions": "x"}, "not a list"),
        ({"before_ns": "30d"}, "before_ns"),
        ({"before_ns": True}, "before_ns"),
        ({"repository": "work"}, "repository"),
        ({"scenario": "../x"}, "scenario"),
        ({"sessions": ["x"], "dry_run": 1}, "dry_run"),
    ],
)
def test_nothing_goes_by_mistake(daemon: RunningDaemon, body: object, said: str) -> None:
    before = daemon.get("/reef/status")["counts"]
    status, told = daemon.control("POST", "/reef/purge", body)
    assert (status, told["error"]["kind"]) == (400, "usage")
    assert said in told["error"]["message"]
    assert daemon.get("/reef/status")["counts"] == before


def test_what_is_not_there_is_404_and_an_agent_may_forget_nothing(daemon: RunningDaemon) -> None:
    assert daemon.control("POST", "/reef/purge", {"sessions": ["ses_nobody"]})[0] == 404
    receipt = say(daemon, "an agent tries")
    assert daemon.post("/reef/purge", {"receipts": [receipt]})[0] == 401
    assert daemon.open("/reef/audit", b"", method="GET").status == 401


def test_decisions_are_in_the_audit_log_without_what_was_said(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "judge me")
    body = {"score": 0, "feedback": "terrible words", "references": [receipt], "agent_record_id": "words of a client"}
    daemon.control("POST", "/reef/report", body)
    daemon.control("POST", "/reef/undo", {})
    assert entries(daemon, "feedback")[0]["id"].startswith("sha256:")
    rated = daemon.control("POST", "/reef/report", {"score": 0, "references": [receipt]})[1]["agent_record_id"]
    daemon.control("POST", "/reef/undo", {})
    daemon.control("POST", "/reef/pause", {})
    daemon.control("POST", "/reef/resume", {})
    assert entries(daemon, "feedback")[0] == {"id": rated, "scenario": "default", "score": 0.0, "about": 1}
    assert entries(daemon, "undo")[0]["id"] == rated
    assert len(entries(daemon, "pause")) == len(entries(daemon, "resume")) == 1
    told = json.dumps(daemon.get("/reef/audit?limit=200"))
    assert "words" not in told


def test_the_control_token_used_over_tcp_leaves_a_trace_and_the_agents_does_not(daemon: RunningDaemon) -> None:
    control = {"authorization": f"Bearer {daemon.control_token}"}
    before = len(entries(daemon, "control"))
    assert daemon.open("/reef/report", {"score": 1, "references": [say(daemon, "x")]}).status == 200
    assert len(entries(daemon, "control")) == before
    daemon.open("/reef/resume", {}, headers=control).read()
    until(lambda: len(entries(daemon, "control")) == before + 1, "the entry")
    assert entries(daemon, "control")[0] == {"method": "POST", "path": "/reef/resume"}


def test_a_key_in_a_path_is_not_kept(daemon: RunningDaemon) -> None:
    key = "sk-ant-api03-" + "aB3" * 12
    control = {"authorization": f"Bearer {daemon.control_token}"}
    assert daemon.open(f"/reef/{key}", {}, headers=control).status == 404
    until(lambda: any("redacted" in facts["path"] for facts in entries(daemon, "control")), "the entry")
    assert key not in json.dumps(daemon.get("/reef/audit?limit=200"))
