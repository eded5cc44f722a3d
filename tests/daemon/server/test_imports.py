"""`POST /reef/records` and `/reef/records/batch`, as the published protocol has them."""

from typing import Any

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Turn

TURNS = (Turn("by the moon"),)


def inference(id: str, text: str = "2+2?", **changes: Any) -> dict[str, Any]:
    response = {"choices": [{"message": {"role": "assistant", "content": f"answer to {text}"}}]}
    payload = {"model": "theirs", "messages": [{"role": "user", "content": text}], "response": response, **changes}
    return {"agent_record_id": id, "request_type": "inference", "payload": payload}


def report(id: str, *references: str, **payload: Any) -> dict[str, Any]:
    return {
        "agent_record_id": id,
        "request_type": "report",
        "payload": {"references": references, "score": 1} | payload,
    }


def send(daemon: RunningDaemon, body: object, path: str = "/reef/records/batch") -> tuple[int, Any]:
    return daemon.control("POST", path, body)


def count(daemon: RunningDaemon) -> int:
    return int(daemon.get("/reef/status")["counts"]["records"])


def test_one_record_and_a_report_on_it(daemon: RunningDaemon) -> None:
    status, told = send(daemon, inference("one-1"), "/reef/records")
    assert (status, told) == (200, {"agent_record_id": "one-1", "scenario": "default", "request_type": "inference"})
    assert send(daemon, report("one-r", "one-1"), "/reef/records")[0] == 200
    row = daemon.get("/reef/records/one-1")
    assert (row["engine"], row["model_asked"], row["preview"]) == ("import", "theirs", "answer to 2+2?")
    assert [one["score"] for one in row["reports"]] == [1.0]


def test_a_batch_is_acknowledged_line_by_line_each_time_and_kept_once(daemon: RunningDaemon) -> None:
    body = {"records": [inference("b-1", "one"), inference("b-2", "two"), report("b-r", "b-1", "b-2")]}
    before = count(daemon)
    answers = [send(daemon, body) for _ in range(2)]
    assert answers[0] == answers[1]
    assert [one["agent_record_id"] for one in answers[0][1]["records"]] == ["b-1", "b-2", "b-r"]
    assert count(daemon) == before + 2


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([], 400),
        ([1], 400),
        ([{}], 400),
        ([inference("new"), {**inference("x"), "scenario": "other"}], 400),
        ([inference("new"), {**inference("x"), "agent_record_id": " "}], 400),
        ([inference("new"), {**inference("x"), "agent_record_id": 1}], 400),
        ([inference("new"), {**inference("x"), "request_type": "train"}], 400),
        ([inference("new"), {**inference("x"), "payload": []}], 400),
        ([inference("new"), report("r", "missing")], 400),
        ([inference("new"), report("r", "new", score="good")], 400),
        ([report("r", "new"), inference("new")], 400),
        ([inference("new"), inference("new", "changed")], 409),
        ([inference(str(n)) for n in range(1001)], 400),
    ],
)
def test_a_batch_that_does_not_fit_leaves_nothing(daemon: RunningDaemon, records: list[Any], status: int) -> None:
    before = count(daemon)
    answered, told = send(daemon, {"records": records})
    assert answered == status
    assert told["error"]["kind"]
    assert count(daemon) == before


def test_every_dialect_is_read(daemon: RunningDaemon) -> None:
    messages = inference(
        "d-messages", system="s", response={"type": "message", "content": [{"type": "text", "text": "by messages"}]}
    )
    assert send(daemon, {"records": [messages]})[0] == 200
    answer = daemon.get("/reef/traces/" + daemon.get("/reef/records/d-messages")["session"])["records"][0]["answer"]
    assert answer["parts"] == [{"type": "text", "text": "by messages"}]


def test_an_agents_token_may_not_import(daemon: RunningDaemon) -> None:
    """Who can only ask and report must not put words into a model's mouth."""
    assert daemon.post("/reef/records", inference("forged"))[0] == 401


def test_a_body_over_the_limit_is_refused(daemon: RunningDaemon) -> None:
    assert send(daemon, {"records": [inference("large", "x" * (11 << 20))]})[0] == 413


def test_secrets_are_taken_out_of_imports_too(daemon: RunningDaemon) -> None:
    secret = "sk-ant-api03-" + "a1B2c3D4" * 11 + "-AAAA"
    assert send(daemon, {"records": [inference("secret-1", f"my key is {secret}")]})[0] == 200
    assert secret.encode() not in daemon.home.database.read_bytes()
    status, body = daemon.control("GET", "/reef/records/secret-1")
    assert (status, body["redacted"] > 0) == (200, True)
