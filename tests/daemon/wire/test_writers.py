"""A request written in another dialect: it means the same, and the vendor takes it.

What a provider is sent is read back by our own parsers, which are strict; what only that vendor asks for is named.
"""

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import (
    ChatRequest,
    Dialect,
    Image,
    Message,
    Part,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from daemon.wire import chat_writer, messages_writer, responses_writer
from daemon.wire.base import dialect
from daemon.wire.parts import encoded_image

BASH = Tool("bash", "runs", {"type": "object", "properties": {"c": {"type": "string"}}})
PICTURE = encoded_image("image/png", "aGk=")
CALL = ToolUse("c1", "bash", '{"c":"ls"}')
TALK = (
    Message("system", (Text("be brief"),)),
    Message("user", (Text("go"),)),
    Message("assistant", (Text("Look:"), CALL)),
    Message("tool", (ToolResult("c1", "a.txt"),)),
)
WRITERS: list[Callable[[ChatRequest], bytes]] = [chat_writer.write, messages_writer.write, responses_writer.write]
EVERY = pytest.mark.parametrize("name", ["chat", "messages", "responses"])


def said(role: Role, *parts: Part) -> Message:
    return Message(role, parts)


def asked(*messages: Message, **fields: Any) -> ChatRequest:
    return ChatRequest("m", messages or TALK, **fields)


def chat(*messages: Message, **fields: Any) -> Any:
    return json.loads(chat_writer.write(asked(*messages, **fields)))


def anthropic(*messages: Message, **fields: Any) -> Any:
    return json.loads(messages_writer.write(asked(*messages, **fields)))


def responses(*messages: Message, **fields: Any) -> Any:
    return json.loads(responses_writer.write(asked(*messages, **fields)))


@EVERY
def test_what_is_written_is_read_back_as_it_was(name: Any) -> None:
    request = asked(
        tools=(BASH,),
        tool_choice=ToolChoice("required"),
        parallel_tool_calls=False,
        sampling=Sampling(max_tokens=9, temperature=0.5),
        stream=True,
        include_usage=True,
    )
    codec = dialect(name)
    assert codec.parse(codec.write(request)) == request


@EVERY
def test_a_picture_arrives_whole(name: Any) -> None:
    codec = dialect(name)
    (message,) = codec.parse(codec.write(asked(said("user", Text("see"), PICTURE)))).messages
    assert message.parts == (Text("see"), PICTURE)
    (image,) = (part for part in message.parts if isinstance(part, Image))
    assert image.url == PICTURE.url


@EVERY
def test_another_providers_file_is_refused_by_name(name: Any) -> None:
    with pytest.raises(BadRequest, match="file-123"):
        dialect(name).write(asked(said("user", Image("image/*", "file-123"))))


@EVERY
def test_ids_that_the_vendor_would_refuse_are_changed_alike_in_call_and_result(name: Any) -> None:
    codec = dialect(name)
    odd = "functions.bash:0"
    talk = (
        said("user", Text("go")),
        said("assistant", ToolUse(odd, "bash", "{}")),
        said("tool", ToolResult(odd, "x")),
    )
    _, answer, result = codec.parse(codec.write(asked(*talk))).messages
    assert isinstance(answer.parts[0], ToolUse)
    assert isinstance(result.parts[0], ToolResult)
    assert answer.parts[0].id == result.parts[0].id != odd


@EVERY
def test_thoughts_of_another_vendor_are_left_out(name: Any) -> None:
    for seal in ("anthropic:s", "openai:rs_1:e", "chat:", ""):
        body = dialect(name).write(
            asked(said("user", Text("go")), said("assistant", Thinking("hm", seal), Text("yes")))
        )
        own = {"chat": "chat:", "messages": "anthropic:s", "responses": "openai:rs_1:e"}[name]
        assert (b"hm" in body) is (seal == own)


@pytest.mark.parametrize("stream", [True, False])
def test_messages_thoughts_come_back_to_the_byte_through_a_client_of_responses(stream: bool) -> None:
    """Signed and hidden ones, as they were: else the conversation is refused for good (claude-code#63265)."""
    noise = random.Random(9)
    thoughts = [
        {"type": "redacted_thinking", "data": base64.b64encode(noise.randbytes(900)).decode()},
        {"type": "thinking", "thinking": "Hm, wäit.\n", "signature": base64.b64encode(noise.randbytes(300)).decode()},
        {"type": "redacted_thinking", "data": base64.b64encode(noise.randbytes(70)).decode()},
    ]
    call = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"c": "ls"}}
    reader, renderer = (
        dialect(Dialect.MESSAGES).reader("rec_1"),
        dialect(Dialect.RESPONSES).renderer(asked(), "r", "m", 1),
    )
    said = {"content": [*thoughts, call], "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 2}}
    streamed = b"".join([renderer.event(event) for event in (*reader.whole(said), *reader.end())])
    if stream:
        events = [json.loads(one.partition(b"data: ")[2]) for one in (streamed + renderer.finish()).split(b"\n\n")[:-1]]
        output = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    else:
        output = json.loads(renderer.body())["output"]
    result = {"type": "function_call_output", "call_id": output[-1]["call_id"], "output": "a.txt"}
    items = [{"role": "user", "content": "go"}, *output, result]
    body = json.dumps({"model": "m", "input": items}).encode()
    sent = json.loads(messages_writer.write(dialect(Dialect.RESPONSES).parse(body)))
    assert sent["messages"][1]["content"] == [*thoughts, call]


def test_chat_system_prompts_lead_as_one_and_later_ones_are_the_users() -> None:
    messages = chat(
        said("system", Text("a")), said("system", Text("b")), said("user", Text("go")), said("system", Text("note"))
    )["messages"]
    assert messages == [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "go\n\nnote"}]


def test_chat_pictures_of_a_tool_follow_all_results() -> None:
    talk = (
        said("assistant", ToolUse("a", "x", "{}"), ToolUse("b", "x", "{}")),
        said("tool", ToolResult("a", "[image]", images=(PICTURE,))),
        said("tool", ToolResult("b", "two")),
    )
    messages = chat(*talk)["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
    assert messages[-1]["content"][0]["type"] == "image_url"


@pytest.mark.parametrize(
    ("model", "field"),
    [("gpt-5", "max_completion_tokens"), ("openai/o3", "max_completion_tokens"), ("qwen3", "max_tokens")],
)
def test_chat_the_limit_has_the_name_that_the_models_server_knows(model: str, field: str) -> None:
    body = json.loads(chat_writer.write(ChatRequest(model, TALK, sampling=Sampling(max_tokens=9))))
    assert body[field] == 9


def test_messages_results_and_what_follows_are_one_message_of_the_user() -> None:
    messages = anthropic(*TALK, said("user", Text("and now?")))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[-1]["content"]] == ["tool_result", "text"]


def test_messages_has_cache_marks_and_never_more_than_two() -> None:
    """https://github.com/MadAppGang/claudish/pull/256: at most four are allowed."""
    body = anthropic(*TALK, said("user", Text("more")), tools=(BASH,))
    assert json.dumps(body).count("cache_control") == 2
    assert "cache_control" in body["system"][0]
    assert "cache_control" in body["messages"][-1]["content"][-1]


def test_messages_always_has_a_limit() -> None:
    assert anthropic()["max_tokens"] == 32_000


def test_messages_leaves_out_blank_texts_which_anthropic_refuses() -> None:
    messages = anthropic(said("user", Text("go")), said("assistant", Text("\n"), CALL))["messages"]
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]


def test_messages_a_call_that_is_no_json_is_still_an_object() -> None:
    messages = anthropic(said("user", Text("go")), said("assistant", ToolUse("a", "x", '{"c": ')))["messages"]
    assert messages[1]["content"][0]["input"] == {"invalid_json": '{"c": '}


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("claude-opus-5-5", "high", {"type": "adaptive"}),
        ("claude-opus-4-6", "max", {"type": "adaptive"}),
        ("claude-sonnet-4-20250514", "low", {"type": "enabled", "budget_tokens": 2048}),
        ("claude-3-7-sonnet", "high", {"type": "enabled", "budget_tokens": 16_384}),
        ("kimi-k2", "medium", {"type": "enabled", "budget_tokens": 8192}),
        ("claude-opus-5-5", "none", None),
        ("claude-opus-5-5", None, None),
    ],
)
def test_messages_effort_is_told_as_the_model_takes_it(model: str, effort: str | None, thinking: Any) -> None:
    body = json.loads(messages_writer.write(ChatRequest(model, TALK[:2], effort=effort)))
    assert body.get("thinking") == thinking


def test_messages_a_model_that_thinks_gets_no_temperature_and_no_more_thoughts_than_words() -> None:
    sampling = Sampling(max_tokens=2000, temperature=0.5)
    body = json.loads(messages_writer.write(ChatRequest("m", TALK[:2], effort="high", sampling=sampling)))
    assert "temperature" not in body
    assert body["thinking"]["budget_tokens"] == 1999


def test_messages_does_not_ask_to_think_while_calls_are_under_way_whose_thoughts_are_not_there() -> None:
    assert "thinking" not in anthropic(*TALK, effort="high")
    signed = said("assistant", Thinking("hm", "anthropic:s"), CALL)
    assert "thinking" in anthropic(TALK[1], signed, TALK[3], effort="high")


def test_responses_keeps_nothing_with_the_provider_and_asks_for_thoughts_only_where_it_thinks() -> None:
    assert responses()["store"] is False
    assert "include" not in responses()
    body = responses(effort="max")
    assert body["reasoning"] == {"effort": "xhigh", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]


def test_responses_says_that_tools_are_not_strict_since_they_are_unless_told() -> None:
    assert responses(tools=(BASH,))["tools"][0]["strict"] is False


def test_responses_sends_a_thought_back_by_its_id() -> None:
    items = responses(said("user", Text("go")), said("assistant", Thinking("hm", "openai:rs_1:ZW5j"), CALL))["input"]
    assert items[1] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "ZW5j",
        "id": "rs_1",
    }


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("schema", [{}, {"type": "object", "properties": {}}])
def test_the_form_of_the_answer_is_asked_for(write: Callable[[ChatRequest], bytes], schema: Any) -> None:
    body = write(asked(response_schema=schema))
    # Anthropic has no word for "any JSON object".
    assert (b'"json_' in body) is bool(schema or write is not messages_writer.write)
