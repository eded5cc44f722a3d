"""Responses requests, read for an engine that keeps no conversations."""

import json
from typing import Any

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import ChatRequest, Message, Sampling, Text, ToolChoice
from daemon.wire.responses_request import parse

BASH = {"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}}


def read(**fields: Any) -> ChatRequest:
    return parse(json.dumps({"model": "m", "input": "hi", **fields}).encode())


def refused(**fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        read(**fields)
    return caught.value


def test_the_smallest_request() -> None:
    assert read().messages == (Message("user", (Text("hi"),)),)
    assert read().stream is False


def test_instructions_come_first() -> None:
    assert read(instructions="be brief").messages[0] == Message("system", (Text("be brief"),))


def test_an_answers_items_are_one_message_between_the_others() -> None:
    items = [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
    ]
    request = read(input=items, tools=[BASH])
    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "tool"]
    assert len(request.messages[1].parts) == 3


def test_numbers_are_taken_over() -> None:
    request = read(max_output_tokens=9, temperature=0.5, top_p=0.9, parallel_tool_calls=False, stream=True)
    assert request.sampling == Sampling(max_tokens=9, temperature=0.5, top_p=0.9)
    assert (request.parallel_tool_calls, request.stream, request.include_usage) == (False, True, True)


def test_effort_and_cache_key_are_taken_over() -> None:
    request = read(reasoning={"effort": "high", "summary": "auto"}, prompt_cache_key="conv-1")
    assert (request.effort, request.cache_key) == ("high", "conv-1")


def test_tools_of_the_vendors_servers_are_left_out() -> None:
    request = read(tools=[{"type": "web_search"}, BASH, {"type": "image_generation"}])
    assert [tool.name for tool in request.tools] == ["bash"]


def test_a_tool_that_takes_free_text_has_one_argument_and_tells_its_grammar() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
    (tool,) = read(tools=[{"type": "custom", "name": "apply_patch", "format": form}]).tools
    assert tool.custom
    assert tool.schema["required"] == ["input"]
    assert "start: /.+/" in tool.schema["properties"]["input"]["description"]


def test_tools_in_a_namespace_are_named_with_it() -> None:
    (tool,) = read(tools=[{"type": "namespace", "name": "agents", "tools": [{**BASH, "name": "close"}]}]).tools
    assert (tool.name, tool.namespace) == ("agents__close", "agents")


@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        (None, ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "bash"}, ToolChoice("named", "bash")),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"name": "bash"}]}, ToolChoice("required")),
    ],
)
def test_the_choice_of_a_tool(given: Any, read_as: ToolChoice) -> None:
    assert read(tools=[BASH], tool_choice=given).tool_choice == read_as


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {}),
        ({"type": "json_schema", "name": "x", "schema": {"type": "object"}}, {"type": "object"}),
    ],
)
def test_the_form_of_the_answer(form: dict[str, Any], schema: Any) -> None:
    assert read(text={"format": form}).response_schema == schema


@pytest.mark.parametrize("field", ["previous_response_id", "conversation", "prompt"])
def test_what_a_vendor_would_have_to_remember_is_refused(field: str) -> None:
    error = refused(**{field: "resp_1"})
    assert field in error.message
    assert "whole conversation" in str(error.hint)


def test_items_that_only_their_vendor_can_read_are_skipped() -> None:
    skipped = [{"type": "compaction", "encrypted_content": "x"}, {"type": "web_search_call", "action": {}}]
    assert len(read(input=[*skipped, {"role": "user", "content": "hi"}]).messages) == 1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "'msg_1'"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input.0.content.0.type"),
        ({"tools": [{"type": "function"}]}, "tools.0.name"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], named: str) -> None:
    assert named in refused(**fields).message
