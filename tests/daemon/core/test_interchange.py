"""Traces in other programs' forms, both ways."""

from dataclasses import replace
from typing import Any

import pytest

from daemon.core.errors import UsageError
from daemon.core.interchange import atif, envelopes, openai
from daemon.core.records import Image, Message, Text, Thinking, ToolResult, ToolUse
from daemon.core.rows import SessionRow

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    {"role": "assistant", "content": "a.txt is there"},
]
SAID = (
    Message("system", (Text("be brief"),)),
    Message("user", (Text("list"),)),
    Message("assistant", (Thinking("hm"), ToolUse("c1", "bash", '{"command":"ls"}'))),
    Message("tool", (ToolResult("c1", "a.txt"),)),
    Message("assistant", (Text("a.txt is there"),)),
)
SESSION = SessionRow("ses_1", "default", "pi", "list", 1, 2, 2, 2, 30, 8, None, None, None, 0)


def test_an_envelope_passes_as_it_is() -> None:
    line = {"agent_record_id": "a", "request_type": "report", "payload": {"score": 1}}
    assert list(envelopes(line)) == [line]


def test_each_answer_of_a_conversation_is_a_record_with_what_came_before_it() -> None:
    found = list(envelopes({"messages": TALK, "tools": [{"type": "function"}]}))
    assert [len(one["payload"]["messages"]) for one in found] == [2, 4]
    assert [one["payload"]["response"]["choices"][0]["message"] for one in found] == [TALK[2], TALK[4]]
    assert found[0]["payload"]["tools"] == [{"type": "function"}]
    assert found == list(envelopes({"messages": TALK, "tools": [{"type": "function"}]}))
    assert len({one["agent_record_id"] for one in found}) == 2


def test_what_two_files_of_a_forked_conversation_share_has_one_id() -> None:
    """A fork's file repeats its parent's turns: counted again they make 81 of 277 (ccusage/ccusage#897)."""
    first, second = (
        list(envelopes({"messages": [*TALK, {"role": "user", "content": fork}, TALK[-1]]})) for fork in "ab"
    )
    assert [one["agent_record_id"] for one in first[:2]] == [one["agent_record_id"] for one in second[:2]]
    assert first[2]["agent_record_id"] != second[2]["agent_record_id"]


def test_messages_written_are_messages_read() -> None:
    assert openai(SAID) == TALK


def test_anthropic_results_come_before_the_words_beside_them() -> None:
    said = Message("user", (ToolResult("c1", "a.txt"), Text("and now?")))
    assert openai([said]) == [
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        {"role": "user", "content": "and now?"},
    ]


def test_images_are_named() -> None:
    (turn,) = openai([Message("user", (Text("see"), Image("image/png", "sha256:00")))])
    assert turn["content"][1] == {"type": "text", "text": "[image image/png sha256:00]"}


def test_a_trajectory_holds_calls_and_what_they_returned_in_one_step() -> None:
    made = atif(SESSION, [(message, None) for message in SAID])
    assert made["schema_version"].startswith("ATIF-v1.")
    assert [step["source"] for step in made["steps"]] == ["system", "user", "agent", "agent"]
    step = made["steps"][2]
    assert step["tool_calls"] == [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}]
    assert step["observation"] == {"results": [{"source_call_id": "c1", "content": "a.txt"}]}
    assert (step["reasoning_content"], step["step_id"]) == ("hm", 3)
    assert made["final_metrics"]["total_prompt_tokens"] == 30


def test_a_trajectory_says_what_it_cost_where_that_is_known() -> None:
    final = {**atif(SESSION, [])["final_metrics"], "total_cost_usd": 0.25}
    assert atif(replace(SESSION, cost_usd=0.25), [])["final_metrics"] == final


def test_a_trajectory_comes_back_as_the_same_conversation() -> None:
    found = list(envelopes(atif(SESSION, [(message, None) for message in SAID])))
    last = found[-1]["payload"]
    said = [*last["messages"], last["response"]["choices"][0]["message"]]
    assert [one["role"] for one in said] == [one["role"] for one in TALK]
    assert said[2]["tool_calls"][0]["function"]["name"] == "bash"
    assert last["metadata"] == {"session_id": "ses_1"}


def test_arguments_that_are_no_object_are_kept_as_they_are() -> None:
    said = Message("assistant", (ToolUse("c", "bash", "{broken"),))
    made = atif(SESSION, [(said, None)])
    assert made["steps"][0]["tool_calls"][0]["arguments"] == {"arguments": "{broken"}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({}, "of no known form"),
        ({"prompt": "x"}, "'prompt'"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"schema_version": "ATIF-v1.6", "steps": [{"source": "robot"}]}, "steps[0]"),
        ({"schema_version": "ATIF-v1.6", "steps": ["x"]}, "steps[0]"),
    ],
)
def test_what_cannot_be_read_is_named(line: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        list(envelopes(line))
    assert named in caught.value.message


@pytest.mark.parametrize(
    "line",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": "no answer"}]},
        {"messages": [{"role": "assistant", "content": "nobody asked"}]},
        {"schema_version": "ATIF-v1.6", "steps": [{"source": "agent", "observation": 3, "tool_calls": [7]}]},
        {"schema_version": "ATIF-v1.6", "steps": [], "agent": 7, "session_id": 8},
    ],
)
def test_a_conversation_without_an_answer_holds_no_record(line: dict[str, Any]) -> None:
    assert list(envelopes(line)) == []
