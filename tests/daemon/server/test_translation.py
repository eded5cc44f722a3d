"""Every dialect answered by a provider that speaks only another, through a daemon, read by the vendors' clients."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import IncompleteRead
from typing import Any

import anthropic
import openai
import pytest
import zstandard

from daemon.core.paths import Home
from daemon.core.records import Dialect
from daemon.server.translation import upstream_headers
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Call, Fault, Provider, Turn, running_provider

COVERS = ("daemon/server/rendering.py",)
CHAT, MESSAGES, RESPONSES, _ = Dialect
PATHS = {CHAT: "/v1/chat/completions", MESSAGES: "/v1/messages", RESPONSES: "/v1/responses"}
#: (the agent's dialect, the only one that the provider speaks)
THREE = (CHAT, MESSAGES, RESPONSES)
PAIRS = [(asked, spoken) for asked in THREE for spoken in THREE if asked is not spoken]
EVERY = pytest.mark.parametrize(("asked", "spoken"), PAIRS, ids=[f"{a}-by-{b}" for a, b in PAIRS])
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}}
TWO = Turn("Look:", (Call("bash", {"command": "ls"}), Call("bash", {"command": "pwd"})), thinking="Hm, files.")
PIXEL = "iVBORw0KGgo="


@pytest.fixture(scope="module")
def one_provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture
def provider(one_provider: Provider) -> Iterator[Provider]:
    one_provider.turns = (TWO, Turn("Done."))
    one_provider.requests.clear()
    yield one_provider
    one_provider.faults.clear()
    one_provider.framing, one_provider.gzip, one_provider.reply = "plain", False, None


@pytest.fixture(scope="module")
def daemon(module_home: Home, one_provider: Provider) -> Iterator[RunningDaemon]:
    engines = "\n".join(
        f'  only-{name}: {{base_url: "{one_provider.url}/v1", dialects: {name}, api: '
        f"{'anthropic' if name is MESSAGES else 'openai'}}}"
        for name in THREE
    )
    routes = ", ".join(f'"{name}-*": only-{name}' for name in THREE)
    config = f"server: {{port: 0}}\nengine: only-chat\nengines:\n{engines}\nmodels: {{{routes}}}\n"
    with running_daemon(module_home, config) as running:
        yield running


def request(asked: Dialect, spoken: Dialect, *, stream: bool = False, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"model": f"{spoken}-model", "stream": stream, **fields}
    if asked is RESPONSES:
        tool: dict[str, Any] = {"type": "function", "name": "bash", "parameters": SCHEMA}
        return {"input": [{"role": "user", "content": "go"}], "tools": [tool], "instructions": "be brief", **body}
    if asked is MESSAGES:
        tool = {"name": "bash", "input_schema": SCHEMA}
        said = {"messages": [{"role": "user", "content": "go"}], "system": "be brief", "max_tokens": 99}
        return {**said, "tools": [tool], **body}
    tool = {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}
    said = {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]}
    return {**said, "tools": [tool], "stream_options": {"include_usage": True}, **body}


@contextmanager
def clients(daemon: RunningDaemon) -> Iterator[tuple[openai.OpenAI, anthropic.Anthropic]]:
    with (
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=daemon.agent_token, max_retries=0) as gpt,
        anthropic.Anthropic(base_url=daemon.url, api_key=daemon.agent_token, max_retries=0) as claude,
    ):
        yield gpt, claude


def answered(daemon: RunningDaemon, asked: Dialect, body: dict[str, Any]) -> tuple[str, str, list[str], str, int]:
    """(thoughts, words, arguments of the calls, why it stopped, tokens) as the vendor's own client reads them."""
    stream = body.pop("stream")
    with clients(daemon) as (gpt, claude):
        if asked is MESSAGES:
            if stream:
                with claude.messages.stream(**body) as streaming:
                    said: Any = streaming.get_final_message()
            else:
                said = claude.messages.create(**body)
            thoughts = "".join(block.thinking for block in said.content if block.type == "thinking")
            words = "".join(block.text for block in said.content if block.type == "text")
            calls = [json.dumps(block.input) for block in said.content if block.type == "tool_use"]
            return thoughts, words, calls, said.stop_reason, said.usage.output_tokens
        if asked is RESPONSES:
            if stream:
                with gpt.responses.stream(**body) as responding:
                    list(responding)
                    said = responding.get_final_response()
            else:
                said = gpt.responses.create(**body)
            thoughts = "".join(part.text for item in said.output if item.type == "reasoning" for part in item.summary)
            calls = [item.arguments for item in said.output if item.type == "function_call"]
            return thoughts, said.output_text, calls, said.status, said.usage.output_tokens
        if stream:
            with gpt.chat.completions.stream(**body) as completing:
                list(completing)
                said = completing.get_final_completion()
        else:
            body.pop("stream_options")
            said = gpt.chat.completions.create(**body)
        message = said.choices[0].message
        thoughts = message.model_extra.get("reasoning_content") or ""
        calls = [call.function.arguments for call in message.tool_calls or []]
        return thoughts, message.content or "", calls, said.choices[0].finish_reason, said.usage.completion_tokens


CALLED = {CHAT: "tool_calls", MESSAGES: "tool_use", RESPONSES: "completed"}


@EVERY
@STREAM
def test_thoughts_words_parallel_calls_and_usage_arrive(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, stream: bool
) -> None:
    thoughts, words, calls, reason, tokens = answered(daemon, asked, request(asked, spoken, stream=stream))
    assert words.strip() == "Look:"
    assert [json.loads(call) for call in calls] == [{"command": "ls"}, {"command": "pwd"}]
    assert (reason, tokens) == (CALLED[asked], 42)
    assert thoughts.strip() == "Hm, files."
    (sent,) = provider.requests
    assert sent.path == PATHS[spoken]
    assert "be brief" in sent.body.decode()


@EVERY
@STREAM
def test_the_record_is_in_the_agents_dialect(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, stream: bool
) -> None:
    body = request(asked, spoken, stream=stream)
    status, headers, raw = daemon.post(PATHS[asked], body)
    assert status == 200
    receipt = headers["x-reef-agent-record-id"]
    row = daemon.get(f"/reef/records/{receipt}")
    assert (row["dialect"], row["engine"], row["end"], row["completion_tokens"]) == (asked, f"only-{spoken}", "ok", 42)
    assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == raw
    assert [part["type"] for part in daemon.get(f"/reef/traces/{row['session']}")["records"][0]["answer"]["parts"]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]


def results(asked: Dialect, body: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """The next request: the whole answer sent back, with what the tools gave."""
    said = json.loads(raw)
    if asked is RESPONSES:
        calls = [item for item in said["output"] if item["type"] == "function_call"]
        given = [{"type": "function_call_output", "call_id": call["call_id"], "output": "out"} for call in calls]
        return {**body, "input": [*body["input"], *said["output"], *given]}
    if asked is MESSAGES:
        calls = [block for block in said["content"] if block["type"] == "tool_use"]
        given = [{"type": "tool_result", "tool_use_id": call["id"], "content": "out"} for call in calls]
        turns = [{"role": "assistant", "content": said["content"]}, {"role": "user", "content": given}]
        return {**body, "messages": [*body["messages"], *turns]}
    message = said["choices"][0]["message"]
    given = [{"role": "tool", "tool_call_id": call["id"], "content": "out"} for call in message["tool_calls"]]
    return {**body, "messages": [*body["messages"], message, *given]}


@EVERY
def test_what_is_sent_back_reaches_the_provider_as_its_own(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect
) -> None:
    """Calls pair with their results; a thought comes back with its vendor's own seal where the client carried it."""
    body = request(asked, spoken)
    raw = daemon.post(PATHS[asked], body)[2]
    assert daemon.post(PATHS[asked], results(asked, body, raw))[0] == 200
    sent = provider.requests[-1].json()
    said = sent["input"] if spoken is RESPONSES else sent["messages"]
    text = json.dumps(said)
    if spoken is CHAT:
        ids = [call["id"] for call in said[-3]["tool_calls"]]
        assert [message["tool_call_id"] for message in said[-2:]] == ids
        assert said[-3]["reasoning_content"].strip() == "Hm, files."
    elif spoken is MESSAGES:
        ids = [block["id"] for block in said[-2]["content"] if block["type"] == "tool_use"]
        assert [block["tool_use_id"] for block in said[-1]["content"]] == ids
        assert ('"signature": "c2lnbmVk"' in text) is (asked is not CHAT)
        assert text.count("cache_control") == 1
    else:
        ids = [item["call_id"] for item in said if item["type"] == "function_call"]
        assert [item["call_id"] for item in said[-2:]] == ids
        assert ('"encrypted_content": "ZW5jcnlwdGVk"' in text) is (asked is not CHAT)
    assert len(ids) == 2


@pytest.mark.parametrize(("asked", "spoken"), [pair for pair in PAIRS if pair[0] is not CHAT])
@STREAM
def test_a_conversation_goes_back_to_its_own_vendor(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, stream: bool
) -> None:
    """After another has answered, since the person chose so or theirs could not: it refuses seals that are not its own,
    and Anthropic's to think on from a call whose thought is not there.
    """
    body = request(asked, spoken)
    again = results(asked, body, daemon.post(PATHS[asked], body)[2])
    wish: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2000}} if asked is MESSAGES else {}
    status, headers, raw = daemon.post(
        PATHS[asked], {**again, **wish, "model": f"{asked}-model", "stream": stream, "max_tokens": 9000}
    )
    sent = provider.requests[-1]
    assert (status, sent.path) == (200, PATHS[asked])
    assert not any(f'"{seal}' in sent.body.decode() for seal in ("chat:", "openai:", "anthropic:"))
    assert "thinking" not in sent.json()
    assert b"Done." in raw
    assert daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")["end"] == "ok"


def with_picture(asked: Dialect) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{PIXEL}"
    if asked is MESSAGES:
        part: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    elif asked is RESPONSES:
        part = {"type": "input_image", "image_url": url}
    else:
        part = {"type": "image_url", "image_url": {"url": url}}
    text = "input_text" if asked is RESPONSES else "text"
    return [{"role": "user", "content": [{"type": text, "text": "see"}, part]}]


@EVERY
def test_pictures_are_sent(daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect) -> None:
    body = request(asked, spoken)
    body["input" if asked is RESPONSES else "messages"] = with_picture(asked)
    assert daemon.post(PATHS[asked], body)[0] == 200
    assert PIXEL in provider.requests[-1].body.decode()


@EVERY
@STREAM
@pytest.mark.parametrize("status", [401, 529])
def test_an_error_keeps_its_status_and_headers_in_the_agents_shape(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, stream: bool, status: int
) -> None:
    provider.faults.append(Fault(status=status, headers={"retry-after": "7", "anthropic-ratelimit-x": "1"}))
    told, headers, raw = daemon.post(PATHS[asked], request(asked, spoken, stream=stream))
    assert (told, headers["retry-after"], headers["anthropic-ratelimit-x"]) == (status, "7", "1")
    error = json.loads(raw)
    assert error["error"]["message"] == f"scripted {status}"
    assert (error.get("type") == "error") is (asked is MESSAGES)
    assert daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")["end"] == "error"


FAILED = {CHAT: b'data: {"error":', MESSAGES: b"event: error", RESPONSES: b"event: response.failed"}


def failed(daemon: RunningDaemon, asked: Dialect, body: dict[str, Any]) -> tuple[bytes, bool, str]:
    """(what came of a stream that fails, whether its connection broke, how its record ended)"""
    response = daemon.open(PATHS[asked], body)
    try:
        raw, broke = response.read(), False
    except IncompleteRead as error:
        raw, broke = error.partial, True
    receipt = response.headers["x-reef-agent-record-id"]
    return raw, broke, str(daemon.get(f"/reef/records/{receipt}")["end"])


@EVERY
@pytest.mark.parametrize("fault", [Fault(after=5), Fault(error_after=5)], ids=["broken", "error"])
def test_a_stream_that_fails_ends_as_the_agents_dialect_has_it(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, fault: Fault
) -> None:
    provider.faults.append(fault)
    raw, broke, end = failed(daemon, asked, request(asked, spoken, stream=True))
    # Agents that speak chat ask again where a connection breaks, and give up where an error is told.
    assert broke is (asked is CHAT and fault.after is not None)
    assert (FAILED[asked] in raw) is not broke
    assert b"[DONE]" not in raw
    assert end == "incomplete"


@EVERY
def test_a_stream_without_its_end_is_no_whole_answer(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect
) -> None:
    provider.turns, provider.framing = (Turn("Hello"),), "no-end"
    raw, broke, end = failed(daemon, asked, request(asked, spoken, stream=True))
    # A chat provider names why it stops before its last event.
    whole = spoken is not RESPONSES
    assert (FAILED[asked] in raw or broke) is not whole
    assert (end == "ok") is whole


@EVERY
@pytest.mark.parametrize("framing", ["crlf", "comments", "tiny", "no-space"])
def test_any_framing_of_a_stream_is_read(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, framing: Any
) -> None:
    provider.turns, provider.framing = (Turn("阴气渐重 🐟", TWO.calls),), framing
    _, words, calls, *_ = answered(daemon, asked, request(asked, spoken, stream=True))
    assert (words, len(calls)) == ("阴气渐重 🐟", 2)


@EVERY
@STREAM
def test_a_compressed_answer_is_read(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect, stream: bool
) -> None:
    provider.gzip = True
    assert answered(daemon, asked, request(asked, spoken, stream=stream))[1].strip() == "Look:"


@pytest.mark.parametrize(
    ("asked", "fields", "sent"),
    [
        (MESSAGES, {"output_config": {"effort": "max"}}, "high"),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "low"),
        (MESSAGES, {"thinking": {"type": "disabled"}}, "none"),
        (MESSAGES, {}, None),
        (RESPONSES, {"reasoning": {"effort": "xhigh"}}, "high"),
    ],
)
def test_effort_is_told_in_the_providers_words(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, fields: dict[str, Any], sent: str | None
) -> None:
    daemon.post(PATHS[asked], request(asked, CHAT, **fields))
    assert provider.requests[-1].json().get("reasoning_effort") == sent


def test_parallel_calls_are_allowed_or_not_as_the_agent_said(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B079."""
    for said in (True, False):
        daemon.post(PATHS[RESPONSES], request(RESPONSES, CHAT, parallel_tool_calls=said))
        assert provider.requests[-1].json()["parallel_tool_calls"] is said
        daemon.post(PATHS[CHAT], request(CHAT, RESPONSES, parallel_tool_calls=said))
        assert provider.requests[-1].json()["parallel_tool_calls"] is said
        daemon.post(PATHS[CHAT], request(CHAT, MESSAGES, parallel_tool_calls=said))
        assert provider.requests[-1].json()["tool_choice"]["disable_parallel_tool_use"] is not said


def test_what_breaks_a_prefix_cache_is_left_out_and_marks_that_only_anthropic_knows(
    daemon: RunningDaemon, provider: Provider
) -> None:
    """Claude Code's billing block changes with each call: a server that keeps prefixes would read all of it anew."""
    marked = {"type": "text", "cache_control": {"type": "ephemeral"}}
    system = [{**marked, "text": "x-anthropic-billing-header: cc_version=1;"}, {**marked, "text": "rules"}]
    assert daemon.post(PATHS[MESSAGES], request(MESSAGES, CHAT, system=system))[0] == 200
    sent = provider.requests[-1]
    assert sent.json()["messages"][0] == {"role": "system", "content": "rules"}
    assert b"cache_control" not in sent.body
    assert (
        daemon.post(PATHS[MESSAGES], raw := json.dumps(request(MESSAGES, MESSAGES, system=system)).encode())[0] == 200
    )
    assert provider.requests[-1].body == raw


def test_a_compressed_request_is_translated(daemon: RunningDaemon, provider: Provider) -> None:
    """https://github.com/farion1231/cc-switch/pull/3817: Codex compresses its requests when it is logged in."""
    raw = zstandard.compress(json.dumps(request(RESPONSES, CHAT)).encode())
    status, headers, _ = daemon.post(PATHS[RESPONSES], raw, content_encoding="zstd")
    assert status == 200
    assert provider.requests[-1].json()["messages"][-1] == {"role": "user", "content": "go"}
    receipt = headers["x-reef-agent-record-id"]
    assert b'"go"' in daemon.control("GET", f"/reef/records/{receipt}/request")[1]


def test_a_history_of_screenshots_is_no_problem(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B067: https://github.com/EKKOLearnAI/hermes-studio/issues/2757: 25 MB in one request."""
    url = "data:image/png;base64," + "A" * (1 << 20)
    shot = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": url}]}
    call = {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}
    items = [{"role": "user", "content": "look"}, *[item for _ in range(25) for item in (call, shot)]]
    for spoken in (RESPONSES, CHAT):
        assert daemon.post(PATHS[RESPONSES], request(RESPONSES, spoken, input=items))[0] == 200
        assert len(provider.requests[-1].body) > 25 << 20


def test_options_that_a_server_refuses_are_left_out_and_the_question_is_not(
    daemon: RunningDaemon, provider: Provider
) -> None:
    said = (
        "Unsupported parameter: 'reasoning_effort'",
        "Unknown name: parallel_tool_calls",
        "Use 'max_completion_tokens'",
    )
    provider.faults.extend(Fault(status=400, message=one) for one in said)
    wishes: dict[str, Any] = {"reasoning": {"effort": "high"}, "parallel_tool_calls": True, "max_output_tokens": 9}
    assert daemon.post(PATHS[RESPONSES], request(RESPONSES, CHAT, **wishes))[0] == 200
    first, *_, last = [sent.json() for sent in provider.requests]
    assert len(provider.requests) == 4
    assert {name: first.pop(name) for name in ("reasoning_effort", "parallel_tool_calls", "max_tokens")}
    assert last.pop("max_completion_tokens") == 9
    assert first == last


def test_cache_marks_that_a_provider_refuses_are_left_out(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B091: Ours to give up: the agent that asks in another dialect set none."""
    provider.faults.append(Fault(status=400, message="system.0.cache_control: Extra inputs are not permitted"))
    assert daemon.post(PATHS[CHAT], request(CHAT, MESSAGES))[0] == 200
    first, second = (sent.body for sent in provider.requests)
    assert (first.count(b"cache_control"), second.count(b"cache_control")) == (2, 0)


def test_a_refusal_of_the_question_is_told_at_once(daemon: RunningDaemon, provider: Provider) -> None:
    provider.faults.append(Fault(status=400, message="messages.0: bad"))
    assert daemon.post(PATHS[RESPONSES], request(RESPONSES, CHAT, reasoning={"effort": "high"}))[0] == 400
    assert len(provider.requests) == 1


@EVERY
def test_a_prompt_too_long_is_told_in_the_words_that_the_agent_looks_for(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect
) -> None:
    said = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    provider.faults.append(Fault(status=400, message=said))
    status, _, raw = daemon.post(PATHS[asked], request(asked, spoken))
    error = json.loads(raw)["error"]
    assert status == 400
    if asked is MESSAGES:
        assert error["message"] == "prompt is too long: 9000 tokens > 8192 maximum"
    else:
        assert error["code"] == "context_length_exceeded"


@STREAM
def test_a_tool_with_a_name_too_long_is_called_by_it(daemon: RunningDaemon, provider: Provider, stream: bool) -> None:
    name = "mcp__" + "server_" * 12 + "tool"
    body = request(MESSAGES, CHAT, stream=stream, tools=[{"name": name, "input_schema": SCHEMA}])
    provider.reply = lambda asked: Turn(calls=(Call(asked["tools"][0]["function"]["name"], {"command": "ls"}),))
    raw = daemon.post(PATHS[MESSAGES], body)[2]
    assert len(provider.requests[-1].json()["tools"][0]["function"]["name"]) == 64
    assert f'"name":"{name}"'.encode() in raw


@EVERY
def test_a_call_of_a_tool_that_there_is_none_of_goes_there_and_back(
    daemon: RunningDaemon, provider: Provider, asked: Dialect, spoken: Dialect
) -> None:
    """https://github.com/vercel/ai/issues/2786: the agent sees the name that was made up, and its answer is sent."""
    provider.turns = (Turn("", (Call("multi_tool_use.parallel", {"tool_uses": []}),)), Turn("Done."))
    body = request(asked, spoken)
    raw = daemon.post(PATHS[asked], body)[2]
    assert b"multi_tool_use.parallel" in raw
    assert daemon.post(PATHS[asked], results(asked, body, raw))[0] == 200
    assert "multi_tool_use_parallel" in provider.requests[-1].body.decode()


@pytest.mark.parametrize(
    ("target", "sent", "field", "value"),
    [
        (CHAT, (b"x-api-key", b"k"), b"authorization", b"Bearer k"),
        (MESSAGES, (b"authorization", b"Bearer k"), b"x-api-key", b"k"),
        (MESSAGES, (b"authorization", b"Bearer sk-ant-oat01-x"), b"authorization", b"Bearer sk-ant-oat01-x"),
        (MESSAGES, (b"x-api-key", b"k"), b"anthropic-version", b"2023-06-01"),
    ],
)
def test_a_key_goes_where_the_vendor_looks_for_it(
    target: Dialect, sent: tuple[bytes, bytes], field: bytes, value: bytes
) -> None:
    made = dict(upstream_headers([sent, (b"anthropic-beta", b"x"), (b"cookie", b"y")], target))
    assert made[field] == value
    assert not made.keys() & {b"anthropic-beta", b"cookie"}
