"""Feedback on its way in: the fields of a report, and feedback over HTTP."""

import math
from typing import Any

import pytest

from daemon.core.errors import UsageError
from daemon.server.actions import parse_report
from tests.fakes.daemon import RunningDaemon


@pytest.fixture
def receipt(daemon: RunningDaemon) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    return daemon.post("/v1/chat/completions", body)[1]["x-reef-agent-record-id"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "needs a score, feedback or both"),
        ({"score": "1"}, "score '1'"),
        ({"score": True}, "score True"),
        ({"score": math.nan}, "score nan"),
        ({"score": math.inf}, "score inf"),
        ({"feedback": 3}, "feedback 3"),
        ({"feedback": ""}, "needs a score"),
        ({"feedback": "x" * 100_001}, "100001 characters"),
        ({"score": 1, "references": "rec_1"}, "not a list"),
        ({"score": 1, "references": [1]}, "not a list"),
        ({"score": 1, "metadata": []}, "needs"),
        ({"score": 1, "metadata": [1]}, "not an object"),
        ({"score": 1, "agent_record_id": ""}, "not an id"),
        ({"score": 1, "agent_record_id": 7}, "not an id"),
        ({"score": 1, "reward": 1}, "unknown field 'reward'"),
    ],
)
def test_a_bad_report_is_refused_by_field_and_value(data: dict[str, Any], says: str) -> None:
    if data.get("metadata") == []:  # an empty list says as little as an absent one
        assert parse_report(data, "default").metadata == {}
        return
    with pytest.raises(UsageError, match=says):
        parse_report(data, "default")


def test_the_articles_report_is_taken_as_printed(daemon: RunningDaemon, receipt: str) -> None:
    status, _, _ = daemon.post("/reef/report", {"feedback": "wrong answer", "references": [receipt]})
    assert status == 200
    reports = daemon.get(f"/reef/records/{receipt}")["reports"]
    assert [(report["feedback"], report["score"]) for report in reports] == [("wrong answer", None)]


def test_the_same_report_again_changes_nothing_and_another_one_under_its_id_is_a_conflict(
    daemon: RunningDaemon, receipt: str
) -> None:
    report = {"score": 1, "references": [receipt], "agent_record_id": f"mine-{receipt}"}
    answers = [daemon.control("POST", "/reef/report", report) for _ in range(2)]
    assert [(status, data["created"]) for status, data in answers] == [(200, True), (200, False)]
    status, data = daemon.control("POST", "/reef/report", report | {"score": 0})
    assert (status, data["error"]["kind"]) == (409, "conflict")


def test_a_report_on_an_unknown_receipt_is_400_and_names_it(daemon: RunningDaemon) -> None:
    status, data = daemon.control("POST", "/reef/report", {"score": 1, "references": ["rec_nobody"]})
    assert status == 400
    assert "rec_nobody" in data["error"]["message"]


def test_a_report_without_references_is_about_the_last_session(daemon: RunningDaemon, receipt: str) -> None:
    _, data = daemon.control("POST", "/reef/report", {"score": 0})
    assert data["references"] == [receipt]


def test_undo_takes_back_the_last_report_once(daemon: RunningDaemon, receipt: str) -> None:
    daemon.control("POST", "/reef/report", {"score": 1, "references": [receipt]})
    status, row = daemon.control("POST", "/reef/undo", {"record": receipt})
    assert (status, row["undone_ns"] is not None) == (200, True)
    assert daemon.control("POST", "/reef/undo", {"record": receipt})[0] == 404


def test_undo_names_a_report(daemon: RunningDaemon, receipt: str) -> None:
    _, first = daemon.control("POST", "/reef/report", {"score": 1, "references": [receipt]})
    daemon.control("POST", "/reef/report", {"feedback": "stays", "references": [receipt]})
    status, row = daemon.control("POST", "/reef/undo", {"report": first["agent_record_id"], "record": receipt})
    assert (status, row["id"], row["score"]) == (200, first["agent_record_id"], 1.0)
    assert daemon.control("POST", "/reef/undo", {"report": 7})[0] == 400


def test_a_body_that_is_not_an_object_is_refused(daemon: RunningDaemon) -> None:
    assert daemon.control("POST", "/reef/report", [1])[0] == 400
    assert daemon.post("/reef/report", b"{")[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"score": 1' + b"0" * 400 + b"}",
        b'{"score": 1, "metadata": {"a": NaN}}',
        b'{"score": 1, "references": ["\\ud800"]}',
        b"\xff",
    ],
)
def test_a_hostile_body_is_the_callers_mistake(daemon: RunningDaemon, body: bytes) -> None:
    assert daemon.post("/reef/report", body)[0] == 400


def test_an_endless_report_is_refused(daemon: RunningDaemon) -> None:
    assert daemon.post("/reef/report", b'{"feedback": "%s"}' % (b"x" * (5 << 20)))[0] == 413


def test_an_agents_token_may_report(daemon: RunningDaemon, receipt: str) -> None:
    assert daemon.post("/reef/report", {"score": 1, "references": [receipt]})[0] == 200
