"""What is exported comes back the same."""

import json
from typing import Any

from daemon.core.client import Client
from tests.daemon.server.test_control import say
from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Turn

TURNS = (Turn("by the moon"),)


def exported(daemon: RunningDaemon, **query: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Client(daemon.home.socket).rows("/reef/export", **query)]


def test_conversations_go_out_without_what_was_said_to_reef(daemon: RunningDaemon) -> None:
    first = say(daemon, "what are tides")
    said = ["what are tides", "by the moon", "reef-good", f"Reef: recorded good on {first}", "and ebbs?"]
    last = say(daemon, *said)
    session = daemon.get(f"/reef/records/{last}")["session"]
    assert session == daemon.get(f"/reef/records/{first}")["session"]
    (line,) = exported(daemon, form="openai", q=f"session:{session}")
    assert [one["content"] for one in line["messages"]] == ["what are tides", "by the moon", "and ebbs?", "by the moon"]


def test_records_go_out_and_come_back_into_another_scenario(daemon: RunningDaemon) -> None:
    first = say(daemon, "how do tides work")
    second = say(daemon, "how do tides work", "by the moon", "and lakes?")
    body = {"score": 1, "feedback": "right", "references": [second]}
    assert daemon.control("POST", "/reef/report", body)[0] == 200
    lines = exported(daemon, q=f"session:{daemon.get(f'/reef/records/{first}')['session']}")
    assert [line["request_type"] for line in lines] == ["inference", "inference", "report"]
    assert [line["agent_record_id"] for line in lines[:2]] == [first, second]
    assert lines[1]["payload"]["messages"][-1] == {"role": "user", "content": "and lakes?"}
    assert lines[1]["payload"]["response"]["choices"][0]["message"]["content"] == "by the moon"
    for line in lines:  # as from another machine: other ids
        line["agent_record_id"] += "-again"
        line["payload"].get("response", {}).pop("id", None)
        line["payload"]["references"] = [f"{one}-again" for one in line["payload"].pop("references", [])]
        if line["request_type"] == "inference":
            del line["payload"]["references"]
    client = Client(daemon.home.socket)
    client.post("/reef/records/batch", {"records": lines}, scope="again")
    (session,) = daemon.get("/reef/sessions?scenario=again")["items"]
    assert (session["turns"], session["score"], session["title"]) == (2, 1.0, "how do tides work")


def test_a_session_as_messages_and_as_a_trajectory(daemon: RunningDaemon) -> None:
    """BUGS B204."""
    receipt = say(daemon, "form", **{"x-reef-scenario": "forms"})
    (line,) = exported(daemon, form="openai", scenario="forms")
    assert line == {"messages": [{"role": "user", "content": "form"}, {"role": "assistant", "content": "by the moon"}]}
    (trajectory,) = exported(daemon, form="atif", scenario="forms")
    assert [step["source"] for step in trajectory["steps"]] == ["user", "agent"]
    assert trajectory["steps"][1]["extra"] == {"agent_record_id": receipt}


def test_all_of_it_or_a_page(daemon: RunningDaemon) -> None:
    for n in range(3):
        say(daemon, f"paged {n}", **{"x-reef-scenario": "paged"})
    assert len(exported(daemon, scenario="paged")) == 3
    assert len(exported(daemon, scenario="paged", limit=2)) == 2


def test_an_unknown_form_is_refused(daemon: RunningDaemon) -> None:
    status, told = daemon.control("GET", "/reef/export?form=csv")
    assert (status, told["error"]["kind"]) == (400, "usage")


def test_every_dialect_goes_out_as_it_came_in(daemon: RunningDaemon) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash", "arguments": "{}"}
    text = [{"type": "output_text", "text": "by responses"}]
    payloads: dict[str, dict[str, Any]] = {
        "responses": {
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}],
            "response": {"output": [{"type": "message", "role": "assistant", "content": text}, call]},
        },
        "messages": {
            "system": "s",
            "messages": [{"role": "user", "content": "q"}],
            "response": {"content": [{"type": "tool_use", "id": "c1", "name": "bash", "input": {"a": 1}}]},
        },
    }
    client = Client(daemon.home.socket)
    for name, payload in payloads.items():
        line = {"agent_record_id": f"dialect-{name}", "request_type": "inference", "payload": {"model": "m", **payload}}
        client.post("/reef/records/batch", {"records": [line]}, scope=f"dialect-{name}")
        (out,) = exported(daemon, scenario=f"dialect-{name}")
        field = "output" if name == "responses" else "content"
        assert out["payload"]["response"][field] == payload["response"][field]
        (talk,) = exported(daemon, form="openai", scenario=f"dialect-{name}")
        answer = talk["messages"][-1]
        assert answer["tool_calls"][0]["function"]["name"] == "bash"
