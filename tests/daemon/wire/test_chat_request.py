"""What real agents send to /v1/chat/completions, and what is refused."""

import base64
import hashlib
import json
from typing import Any

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import (
    ChatRequest,
    Dialect,
    Image,
    Message,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from daemon.wire.base import dialect

CODEC = dialect(Dialect.CHAT)
PIXEL = b"\x89PNG pixel"
BASH = {
    "type": "function",
    "function": {"name": "bash", "description": "Run it", "parameters": {"type": "object", "properties": {"c": {}}}},
}


def parse(**fields: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    return CODEC.parse(json.dumps(body).encode())


def one(message: dict[str, Any]) -> Message:
    return parse(messages=[message]).messages[0]


def refused(**fields: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        parse(**fields)
    return caught.value.message


def test_the_smallest_request() -> None:
    assert parse() == ChatRequest("m", (Message("user", (Text("hi"),)),))


def test_content_may_be_a_string_or_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert one({"role": "user", "content": parts}) == Message("user", (Text("a"), Text("b")))


def test_developer_is_system() -> None:
    """BUGS B071."""
    assert one({"role": "developer", "content": "be brief"}) == Message("system", (Text("be brief"),))


def test_a_system_message_may_stand_anywhere() -> None:
    request = parse(messages=[{"role": "user", "content": "a"}, {"role": "system", "content": "b"}])
    assert [message.role for message in request.messages] == ["user", "system"]


@pytest.mark.parametrize("empty", [{"content": None}, {"content": ""}, {}, {"content": []}])
def test_an_answer_that_only_calls_tools_has_no_text(empty: dict[str, Any]) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"c": 1}'}}
    assert one({"role": "assistant", **empty, "tool_calls": [call]}) == Message(
        "assistant", (ToolUse("c1", "bash", '{"c": 1}'),)
    )


def test_arguments_are_kept_as_the_model_wrote_them() -> None:
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"c": '}}
    assert one({"role": "assistant", "tool_calls": [call]}).parts == (ToolUse("c1", "bash", '{"c": '),)


def test_arguments_sent_as_an_object_become_text() -> None:
    call = {"id": "c1", "function": {"name": "bash", "arguments": {"c": 1}}}
    assert one({"role": "assistant", "tool_calls": [call]}).parts == (ToolUse("c1", "bash", '{"c":1}'),)


@pytest.mark.parametrize("content", ["done\n", [{"type": "text", "text": "done\n"}]])
def test_a_tool_result_may_be_a_string_or_parts(content: Any) -> None:
    message = {"role": "tool", "tool_call_id": "c1", "content": content}
    assert one(message) == Message("tool", (ToolResult("c1", "done\n"),))


def test_an_image_in_a_tool_result_is_named() -> None:
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    content = [{"type": "text", "text": "shot:"}, {"type": "image_url", "image_url": {"url": url}}]
    part = one({"role": "tool", "tool_call_id": "c1", "content": content}).parts[0]
    assert isinstance(part, ToolResult)
    assert part.content == f"shot:\n[image image/png sha256:{hashlib.sha256(PIXEL).hexdigest()}]"


def test_an_image_is_named_by_its_bytes_and_not_kept() -> None:
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    part = one({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}).parts[0]
    assert part == Image("image/png", f"sha256:{hashlib.sha256(PIXEL).hexdigest()}")


def test_a_linked_image_is_named_by_its_link() -> None:
    content = [{"type": "image_url", "image_url": "https://example.com/a.png"}]
    assert one({"role": "user", "content": content}).parts == (Image("image/*", "https://example.com/a.png"),)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_that_an_agent_sends_back_is_thinking(name: str) -> None:
    message = {"role": "assistant", name: "let me see", "content": "yes"}
    assert one(message).parts == (Thinking("let me see", "chat:"), Text("yes"))


def test_legacy_function_calls_and_results_are_read() -> None:
    asked = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert one(asked).parts == (ToolUse("", "f", "{}"),)
    assert one({"role": "function", "name": "f", "content": "1"}) == Message("tool", (ToolResult("f", "1"),))


def test_a_refusal_is_text() -> None:
    assert one({"role": "assistant", "content": None, "refusal": "no"}).parts == (Text("no"),)


def test_tools_are_read_and_those_of_the_vendor_left_out() -> None:
    bare = {"type": "function", "function": {"name": "ls", "strict": True, "parameters": None}}
    tools = parse(tools=[BASH, {"type": "web_search"}, {"type": "custom", "custom": {"name": "x"}}, bare]).tools
    assert tools == (
        Tool("bash", "Run it", {"type": "object", "properties": {"c": {}}}),
        Tool("ls", "", {"type": "object", "properties": {}}),
    )


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (None, ToolChoice("auto")),
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "function": {"name": "bash"}}, ToolChoice("named", "bash")),
        ({"type": "function", "name": "bash"}, ToolChoice("named", "bash")),
    ],
)
def test_tool_choice_in_all_its_forms(value: Any, choice: ToolChoice) -> None:
    assert parse(tools=[BASH], tool_choice=value).tool_choice == choice


def test_allowed_tools_limit_what_is_on_offer() -> None:
    other = {"type": "function", "function": {"name": "ls"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "ls"}}]}
    request = parse(tools=[BASH, other], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert [tool.name for tool in request.tools] == ["ls"]
    assert request.tool_choice == ToolChoice("required")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5}, Sampling(max_tokens=5)),
        ({"max_completion_tokens": 6}, Sampling(max_tokens=6)),
        ({"max_completion_tokens": 6, "max_tokens": 5}, Sampling(max_tokens=6)),
        ({"max_tokens": None}, Sampling()),
        ({"max_tokens": 5.0}, Sampling(max_tokens=5)),
        ({"stop": "END"}, Sampling(stop=("END",))),
        ({"stop": ["a", "b"]}, Sampling(stop=("a", "b"))),
        ({"temperature": 0, "top_p": 1}, Sampling(temperature=0.0, top_p=1.0)),
        ({"top_k": 40, "min_p": 0.05, "seed": 7}, Sampling(top_k=40, min_p=0.05, seed=7)),
        (
            {"presence_penalty": 1, "frequency_penalty": -1},
            Sampling(presence_penalty=1.0, frequency_penalty=-1.0),
        ),
        ({"logprobs": True, "top_logprobs": 3}, Sampling(logprobs=True, top_logprobs=3)),
    ],
)
def test_sampling(fields: dict[str, Any], expected: Sampling) -> None:
    assert parse(**fields).sampling == expected


def test_streaming_options() -> None:
    request = parse(stream=True, stream_options={"include_usage": True}, parallel_tool_calls=False)
    assert (request.stream, request.include_usage, request.parallel_tool_calls) == (True, True, False)
    assert not parse(stream_options=None).include_usage


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {}),
        ({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}, {"type": "object"}),
        ({"type": "json_schema", "json_schema": {"name": "n"}}, {}),
    ],
)
def test_response_formats(value: Any, schema: Any) -> None:
    assert parse(response_format=value).response_schema == schema


def test_fields_nobody_here_knows_are_ignored() -> None:
    request = parse(store=False, metadata={"a": "b"}, verbosity="low", n=1, user="u")
    assert request == parse()


def test_what_only_a_provider_can_use_is_kept_for_it() -> None:
    request = parse(reasoning_effort="high", prompt_cache_key="k")
    assert (request.effort, request.cache_key) == ("high", "k")


def test_without_a_model_the_default_is_meant() -> None:
    assert parse(model=None).model == "default"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": []}, "messages: at least one message is needed"),
        ({"messages": None}, "messages: at least one message is needed"),
        ({"messages": "hi"}, 'messages: expected a list, got "hi"'),
        ({"messages": ["hi"]}, 'messages.0: expected an object, got "hi"'),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role: expected one of system, developer"),
        ({"messages": [{"content": "x"}]}, "messages.0.role: expected one of"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages.0.content: expected a list, got 3"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            'messages.0.content.0.type: expected text or image_url, got "input_audio"',
        ),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages.0.tool_calls: expected a list"),
        ({"model": 3}, "model: expected a string, got 3"),
        ({"stream": "yes"}, 'stream: expected true or false, got "yes"'),
        ({"max_tokens": 0}, "max_tokens: expected at least 1, got 0"),
        ({"max_tokens": "many"}, 'max_tokens: expected an integer, got "many"'),
        ({"temperature": -1}, "temperature: expected a number from 0 to 100, got -1"),
        ({"top_p": 2}, "top_p: expected a number from 0 to 1, got 2"),
        ({"stop": 3}, "stop: expected a string or a list of strings, got 3"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs: expected at most 20, got 21"),
        ({"n": 2}, "n: expected 1: this engine gives one answer a request, got 2"),
        ({"tools": [{"type": "function"}]}, "tools.0.function.name: expected a name, got null"),
        ({"tools": [3]}, "tools.0: expected an object, got 3"),
        ({"tool_choice": "maybe"}, "tool_choice: expected auto, none, required or a function"),
        ({"tool_choice": "required"}, "tool_choice: a tool is required, and tools offers none"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice: no tool is called 'x'"),
        ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name: expected the name of a"),
        ({"response_format": {"type": "xml"}}, "response_format.type: expected text, json_object or json_schema"),
    ],
)
def test_what_is_refused_is_named_with_its_value(fields: dict[str, Any], message: str) -> None:
    assert refused(**fields).startswith(message)


def test_a_stored_message_of_a_kind_no_engine_reads_is_shown_as_what_it_is() -> None:
    raw = json.dumps({"role": "user", "content": [{"type": "file", "file": {"id": 1}, "cache_control": {}}]}).encode()
    assert CODEC.message(raw) == Message("user", (Text('{"file":{"id":1},"type":"file"}'),))


@pytest.mark.parametrize("raw", [b"", b"\xff", b"[]", b'{"role":"wizard"}', b'{"role":"user","content":{}}'])
def test_a_stored_message_that_cannot_be_read_is_shown_raw(raw: bytes) -> None:
    assert CODEC.message(raw).text == raw.decode("utf-8", "replace")
