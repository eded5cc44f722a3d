"""A Responses client that sends only what is new goes on with a provider that keeps no conversations."""

import json
from typing import Any

import openai
import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Call, Provider, Turn

RESPONSES = "/v1/responses"


TURNS = (Turn("First."),)


def ask(daemon: RunningDaemon, text: str, before: str | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
    body = {"model": "m", "input": text, "previous_response_id": before}
    status, told, raw = daemon.post(RESPONSES, body, **headers)
    return status, {**json.loads(raw), "receipt": told["x-reef-agent-record-id"]}


def test_the_whole_conversation_reaches_the_provider_and_is_one_session(
    daemon: RunningDaemon, provider: Provider
) -> None:
    first = ask(daemon, "one")[1]
    second = ask(daemon, "two", first["id"])[1]
    third = ask(daemon, "three", second["id"])[1]
    told = [(said["role"], said["content"].strip()) for said in provider.requests[-1].json()["messages"]]
    assert told == [
        ("user", "one"),
        ("assistant", "First."),
        ("user", "two"),
        ("assistant", "First."),
        ("user", "three"),
    ]
    sessions = {daemon.get(f"/reef/records/{one['receipt']}")["session"] for one in (first, second, third)}
    assert len(sessions) == 1
    assert daemon.get(f"/reef/traces/{sessions.pop()}")["session"]["turns"] == 3


def test_openais_client_gives_a_tools_result_by_it(daemon: RunningDaemon, provider: Provider) -> None:
    provider.reply = lambda asked: (
        Turn(calls=(Call("bash", {"command": "ls"}),)) if len(asked["messages"]) == 1 else Turn("ok")
    )
    tools: Any = [{"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}}]
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=daemon.agent_token, max_retries=0) as client:
        asked = client.responses.create(model="m", input="go", tools=tools)
        (asked_for,) = (item for item in asked.output if item.type == "function_call")
        given: Any = [{"type": "function_call_output", "call_id": asked_for.call_id, "output": "a.txt"}]
        answer = client.responses.create(model="m", input=given, previous_response_id=asked.id, tools=tools)
    provider.reply = None
    assert answer.output_text.strip() == "ok"
    assert [said["role"] for said in provider.requests[-1].json()["messages"]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("id", ["resp_nobody", "made-up", "resp_", ""])
def test_an_answer_that_nobody_knows_is_refused_by_name(daemon: RunningDaemon, id: str) -> None:
    status, told = ask(daemon, "x", id)
    assert status == 400
    assert "previous_response_id" in told["error"]["message"]


def test_an_answer_of_another_scenario_is_not_gone_on_from(daemon: RunningDaemon) -> None:
    first = ask(daemon, "one", x_reef_scenario="work/a")[1]
    assert ask(daemon, "two", first["id"], x_reef_scenario="work/b")[0] == 400
