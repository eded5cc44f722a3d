"""What real agents send to /v1/messages, and what is refused."""

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

CODEC = dialect(Dialect.MESSAGES)
PIXEL = b"\x89PNG pixel"
CACHED = {"cache_control": {"type": "ephemeral"}}
SCHEMA = {"type": "object", "properties": {"c": {"type": "string"}}}
BASH = {"name": "Bash", "description": "Run it", "input_schema": SCHEMA, **CACHED}


def parse(**fields: Any) -> ChatRequest:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields}
    return CODEC.parse(json.dumps(body).encode())


def read(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return parse(messages=list(messages)).messages


def refused(**fields: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        parse(**fields)
    return caught.value.message


def test_the_smallest_request() -> None:
    request = parse()
    assert request.messages == (Message("user", (Text("hi"),)),)
    assert request.sampling == Sampling(max_tokens=9)


@pytest.mark.parametrize("system", ["be brief", [{"type": "text", "text": "be brief", **CACHED}]])
def test_system_comes_first_as_a_message(system: Any) -> None:
    assert parse(system=system).messages[0] == Message("system", (Text("be brief"),))


def test_what_the_vendors_servers_did_is_left_out_of_a_conversation_that_moved() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    (answer,) = read({"role": "assistant", "content": [search, found, {"type": "text", "text": "so"}]})
    assert answer == Message("assistant", (Text("so"),))


def test_a_document_that_is_text_is_read() -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    assert read({"role": "user", "content": [document]}) == (Message("user", (Text("words"),)),)


def test_claudes_billing_block_is_no_part_of_the_prompt() -> None:
    blocks = [{"type": "text", "text": "x-anthropic-billing-header: cc=1;"}, {"type": "text", "text": "rules"}]
    assert parse(system=blocks).messages[0].text == "rules"


@pytest.mark.parametrize("system", [None, "", []])
def test_no_system_is_no_message(system: Any) -> None:
    assert len(parse(system=system).messages) == 1


def test_a_system_message_may_stand_in_the_middle() -> None:
    found = read(
        {"role": "user", "content": "a"},
        {"role": "system", "content": [{"type": "text", "text": "b", **CACHED}], "output_config": {"effort": "low"}},
        {"role": "assistant", "content": "c"},
    )
    assert found[1] == Message("system", (Text("b"),))


def test_thinking_is_read_and_redacted_thinking_has_no_text() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "abc"},
        {"type": "text", "text": "yes"},
    ]
    thoughts = (Thinking("hm", "anthropic:c2ln"), Thinking("", "anthropic-redacted:abc"))
    assert read({"role": "assistant", "content": content})[0].parts == (*thoughts, Text("yes"))


def test_a_tool_call_keeps_its_input_as_json() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"c": "ls"}, **CACHED}
    assert read({"role": "assistant", "content": [block]})[0].parts == (ToolUse("t1", "Bash", '{"c":"ls"}'),)


def test_tool_results_become_messages_of_their_own_before_what_the_person_says() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "ok", "is_error": False, **CACHED},
        {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "no"}], "is_error": True},
        {"type": "text", "text": "and now?"},
    ]
    assert read({"role": "user", "content": content}) == (
        Message("tool", (ToolResult("t1", "ok"),)),
        Message("tool", (ToolResult("t2", "no", True),)),
        Message("user", (Text("and now?"),)),
    )


def test_a_tool_result_may_hold_images_or_nothing() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PIXEL).decode()}
    content = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": source}]},
        {"type": "tool_result", "tool_use_id": "t2"},
    ]
    name = f"[image image/png sha256:{hashlib.sha256(PIXEL).hexdigest()}]"
    assert [message.parts[0] for message in read({"role": "user", "content": content})] == [
        ToolResult("t1", name),
        ToolResult("t2", ""),
    ]


@pytest.mark.parametrize(
    ("source", "image"),
    [
        (
            {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PIXEL).decode()},
            Image("image/png", f"sha256:{hashlib.sha256(PIXEL).hexdigest()}"),
        ),
        ({"type": "url", "url": "https://example.com/a.png"}, Image("image/*", "https://example.com/a.png")),
        ({"type": "file", "file_id": "file_1"}, Image("image/*", "file_1")),
    ],
)
def test_images_are_named(source: dict[str, str], image: Image) -> None:
    assert read({"role": "user", "content": [{"type": "image", "source": source}]})[0].parts == (image,)


def test_tools_are_read_and_those_that_run_at_the_vendor_left_out() -> None:
    tools = [BASH, {"type": "web_search_20250305", "name": "web_search"}, {"type": "custom", "name": "x"}]
    assert parse(tools=tools).tools == (
        Tool("Bash", "Run it", SCHEMA),
        Tool("x", "", {"type": "object", "properties": {}}),
    )


@pytest.mark.parametrize(
    ("value", "choice", "parallel"),
    [
        (None, ToolChoice("auto"), None),
        ({"type": "auto", "disable_parallel_tool_use": False}, ToolChoice("auto"), True),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice("auto"), False),
        ({"type": "any"}, ToolChoice("required"), None),
        ({"type": "none"}, ToolChoice("none"), None),
        ({"type": "tool", "name": "Bash"}, ToolChoice("named", "Bash"), None),
    ],
)
def test_tool_choice_in_all_its_forms(value: Any, choice: ToolChoice, parallel: bool | None) -> None:
    request = parse(tools=[BASH], tool_choice=value)
    assert (request.tool_choice, request.parallel_tool_calls) == (choice, parallel)


def test_sampling() -> None:
    request = parse(max_tokens=5, temperature=1, top_p=0.9, top_k=40, stop_sequences=["END"], stream=True)
    assert request.sampling == Sampling(max_tokens=5, temperature=1.0, top_p=0.9, top_k=40, stop=("END",))
    assert request.stream


def test_counting_needs_no_limit() -> None:
    assert parse(max_tokens=None).sampling.max_tokens is None


@pytest.mark.parametrize(
    "fields",
    [
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
    ],
)
def test_both_ways_to_ask_for_a_schema(fields: dict[str, Any]) -> None:
    assert parse(**fields).response_schema == {"type": "object"}


def test_effort_alone_asks_for_no_schema() -> None:
    assert parse(output_config={"effort": "medium"}).response_schema is None


def test_fields_nobody_here_knows_are_ignored() -> None:
    request = parse(
        thinking={"type": "adaptive", "display": "omitted"},
        context_management={"edits": []},
        metadata={"user_id": "u"},
        service_tier="auto",
    )
    assert request == parse()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": []}, "messages: at least one message is needed"),
        ({"messages": [{"role": "developer", "content": "x"}]}, "messages.0.role: expected one of user, assistant"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages.0.content: expected a list, got 3"),
        (
            {"messages": [{"role": "user", "content": [{"type": "document"}]}]},
            "messages.0.content.0.type: expected one of text, image",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]},
            "messages.0.content.0.text: expected a string, got 3",
        ),
        ({"system": 3}, "system: expected a string or a list of text blocks, got 3"),
        ({"max_tokens": 0}, "max_tokens: expected at least 1, got 0"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.name: expected a name, got null"),
        ({"tools": [{"name": "a", "input_schema": []}]}, "tools.0.input_schema: expected an object, got []"),
        ({"tool_choice": "auto"}, 'tool_choice: expected an object, got "auto"'),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type: expected one of auto, any, none, tool"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name: expected the name of a tool"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice: no tool is called 'x'"),
        ({"tool_choice": {"type": "any"}}, "tool_choice: a tool is required, and tools offers none"),
        ({"output_format": {"type": "xml"}}, 'output_format.type: expected json_schema, got "xml"'),
    ],
)
def test_what_is_refused_is_named_with_its_value(fields: dict[str, Any], message: str) -> None:
    assert refused(**fields).startswith(message)


def test_a_stored_message_of_tool_results_alone_has_the_role_tool() -> None:
    raw = json.dumps(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
    ).encode()
    assert CODEC.message(raw) == Message("tool", (ToolResult("t", "x"),))


def test_a_stored_call_that_was_cut_off_is_shown_as_far_as_it_went() -> None:
    raw = b'{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":"{\\"c\\": \\"l"}]}'
    assert CODEC.message(raw).parts == (ToolUse("t", "Bash", '{"c": "l'),)


def test_a_stored_block_nobody_here_knows_is_shown_without_its_cache_mark() -> None:
    raw = json.dumps({"role": "user", "content": [{"type": "document", "title": "t", **CACHED}]}).encode()
    assert CODEC.message(raw).text == '{"title":"t","type":"document"}'
