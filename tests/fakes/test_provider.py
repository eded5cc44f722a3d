"""The fake provider is one that real clients take for an original."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import anthropic
import openai
import pytest

from tests.fakes.provider import Call, Fault, Framing, Provider, Turn, running_provider

TOOL_OPENAI: Any = {"type": "function", "function": {"name": "shell", "parameters": {"properties": {"command": {}}}}}
TOOL_ANTHROPIC: Any = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {}}}}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


def openai_client(provider: Provider, retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=retries)


def anthropic_client(provider: Provider, retries: int = 0) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=retries)


def post(provider: Provider, **asked: Any) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=10)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **asked})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    try:
        return response, response.read()
    finally:
        connection.close()


def test_an_openai_client_works_through_the_whole_task(provider: Provider) -> None:
    messages: list[Any] = [{"role": "user", "content": "Create hello.txt"}]
    commands: list[list[str]] = []
    with openai_client(provider) as client:
        for _ in range(3):
            with client.chat.completions.stream(model="m", messages=messages, tools=[TOOL_OPENAI]) as stream:
                message = stream.get_final_completion().choices[0].message
            calls = message.tool_calls or []
            commands.append([json.loads(call.function.arguments)["command"] for call in calls])
            assert all(call.function.name == "shell" for call in calls)
            messages.append(message.to_dict())
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls]
    assert [len(found) for found in commands] == [1, 2, 0]
    assert str(message.content).startswith("Done:")


def test_an_anthropic_client_works_through_the_whole_task(provider: Provider) -> None:
    messages: list[Any] = [{"role": "user", "content": "Create hello.txt"}]
    reasons = []
    with anthropic_client(provider) as client:
        for _ in range(3):
            arguments: Any = {"model": "m", "max_tokens": 9, "messages": messages, "tools": [TOOL_ANTHROPIC]}
            with client.messages.stream(**arguments) as stream:
                answer = stream.get_final_message()
            reasons.append(answer.stop_reason)
            blocks = [block.to_dict() for block in answer.content]
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
                for block in blocks
                if block["type"] == "tool_use"
            ]
            messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    assert reasons == ["tool_use", "tool_use", "end_turn"]


def test_answers_that_are_not_streamed_say_the_same(provider: Provider) -> None:
    with openai_client(provider) as one, anthropic_client(provider) as other:
        chat = one.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        message = other.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        counted = other.messages.count_tokens(model="m", messages=[{"role": "user", "content": "x"}])
    assert chat.choices[0].message.content == "I'll run a command."
    assert message.content[0].to_dict()["text"] == "I'll run a command."
    assert counted.input_tokens > 0


def test_thinking_comes_before_the_text() -> None:
    with (
        running_provider([Turn("yes", thinking="let me see")]) as provider,
        anthropic_client(provider) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream,
    ):
        blocks = [block.to_dict() for block in stream.get_final_message().content]
    assert blocks[0] == {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"}
    assert blocks[1]["text"] == "yes"


def test_the_log_holds_what_was_asked(provider: Provider) -> None:
    post(provider, seed=7)
    assert provider.requests[0].json()["seed"] == 7
    assert (provider.requests[0].method, provider.requests[0].path) == ("POST", "/v1/chat/completions")
    assert provider.requests[0].header("content-type") == "application/json"


def test_a_client_waits_and_tries_again_after_429_and_529(provider: Provider) -> None:
    provider.faults.extend([Fault(status=429, headers={"retry-after-ms": "1"}), Fault(status=529)])
    with anthropic_client(provider, retries=2) as client:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
    assert len(provider.requests) == 3


def test_a_connection_that_breaks_before_the_answer(provider: Provider) -> None:
    provider.faults.append(Fault(drop=True))
    with openai_client(provider) as client, pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(model="m", messages=[])


def test_a_connection_that_breaks_inside_the_answer(provider: Provider) -> None:
    provider.faults.append(Fault(after=2))
    with openai_client(provider) as client, pytest.raises(openai.APIConnectionError):
        list(client.chat.completions.create(model="m", messages=[], stream=True))


def test_silence(provider: Provider) -> None:
    provider.faults.append(Fault(hang=True))
    with openai_client(provider) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(model="m", messages=[], timeout=0.2)


def test_an_error_inside_the_200(provider: Provider) -> None:
    provider.faults.append(Fault(error_after=2))
    with anthropic_client(provider) as client, pytest.raises(anthropic.APIStatusError, match="scripted 529"):
        list(client.messages.create(model="m", max_tokens=9, messages=[], stream=True))


@pytest.mark.parametrize("framing", ["plain", "crlf", "no-space", "comments", "tiny", "no-end"])
def test_every_framing_is_one_that_clients_read(provider: Provider, framing: Framing) -> None:
    provider.framing = framing
    with openai_client(provider) as client:
        chunks = list(client.chat.completions.create(model="m", messages=[], stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "I'll run a command."


def test_compressed_answers_are_really_compressed(provider: Provider) -> None:
    provider.gzip = True
    response, body = post(provider)
    assert response.headers["content-encoding"] == "gzip"
    assert body.startswith(b"\x1f\x8b")
    with openai_client(provider) as client:
        assert client.chat.completions.create(model="m", messages=[]).choices[0].message.content


def test_an_echo_names_the_bytes_it_got(provider: Provider) -> None:
    provider.echo = True
    one, other = (json.loads(post(provider, seed=seed)[1])["choices"][0]["message"]["content"] for seed in (1, 2))
    assert len(one) == 64
    assert one != other


def test_arguments_can_be_scripted_as_broken_text() -> None:
    with running_provider([Turn(calls=(Call("bash", '{"command": "ls'),))]) as provider:
        _, body = post(provider, tools=[TOOL_OPENAI])
    call = json.loads(body)["choices"][0]["message"]["tool_calls"][0]["function"]
    assert call == {"name": "shell", "arguments": '{"command": "ls'}


def test_unknown_paths_are_refused_at_once(provider: Provider) -> None:
    connection = http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=10)
    connection.request("GET", "/api/show")
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status == 404
