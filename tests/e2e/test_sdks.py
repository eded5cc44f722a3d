"""The vendors' own Python clients against the engine inside: streamed and not, tools, errors, leaving early."""

from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.fakes.daemon import RunningDaemon, until

pytestmark = pytest.mark.engine

WEATHER: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture
def gpt(embedded: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{embedded.url}/v1", api_key=embedded.agent_token, max_retries=0) as client:
        yield client


@pytest.fixture
def claude(embedded: RunningDaemon) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=embedded.url, api_key=embedded.agent_token, max_retries=0) as client:
        yield client


def test_openai_whole(gpt: openai.OpenAI) -> None:
    answer = gpt.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "Say hello."}],
        max_tokens=12,
        logprobs=True,
        top_logprobs=2,
    )
    choice = answer.choices[0]
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 12
    assert choice.logprobs is not None
    assert choice.logprobs.content
    assert all(token.logprob <= 0 for token in choice.logprobs.content)


def test_openai_streamed_is_the_same_answer_in_pieces(gpt: openai.OpenAI) -> None:
    def ask() -> Iterator[str]:
        stream = gpt.chat.completions.create(
            model="default",
            messages=[{"role": "user", "content": "Name three fish."}],
            max_tokens=20,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        usage = None
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                if choice.delta.content:
                    yield choice.delta.content
        assert usage is not None
        assert usage.completion_tokens > 0

    pieces = list(ask())
    assert len(pieces) > 1
    assert "".join(pieces).strip()


def test_openai_forced_tool(gpt: openai.OpenAI) -> None:
    answer = gpt.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
        tools=[{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        max_tokens=60,
        temperature=0,
    )
    calls = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "tool_calls"
    assert calls is not None
    assert calls[0].type == "function"
    assert calls[0].function.name == "get_weather"
    assert '"city"' in calls[0].function.arguments


def test_openai_streamed_tool(gpt: openai.OpenAI) -> None:
    stream = gpt.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
        tools=[{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
        tool_choice="required",
        max_tokens=60,
        stream=True,
    )
    names, arguments, finish = [], "", None
    for chunk in stream:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                if call.function and call.function.name:
                    names.append(call.function.name)
                arguments += (call.function.arguments or "") if call.function else ""
    assert (names, finish) == (["get_weather"], "tool_calls")
    assert '"city"' in arguments


def test_openai_responses_whole_and_gone_on_with(gpt: openai.OpenAI) -> None:
    first = gpt.responses.create(model="default", input="Say hello.", instructions="Be brief.", max_output_tokens=12)
    assert first.output_text
    assert first.status in ("completed", "incomplete")
    assert first.usage is not None
    assert 0 < first.usage.output_tokens <= 12
    again = gpt.responses.create(model="default", input="Again.", max_output_tokens=4, previous_response_id=first.id)
    assert again.usage is not None
    assert again.usage.input_tokens > first.usage.input_tokens


def test_openai_responses_streamed_is_the_answer_in_pieces(gpt: openai.OpenAI) -> None:
    with gpt.responses.stream(model="default", input="Name three fish.", temperature=0) as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert len(pieces) > 1
    assert "".join(pieces) == final.output_text


def test_openai_responses_forced_tool_streamed(gpt: openai.OpenAI) -> None:
    with gpt.responses.stream(
        model="default",
        input="What is the weather in Oslo?",
        tools=[{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": False}],
        tool_choice={"type": "function", "name": "get_weather"},
        max_output_tokens=60,
    ) as stream:
        list(stream)
        final = stream.get_final_response()
    (call,) = final.output
    assert call.type == "function_call"
    assert call.name == "get_weather"
    assert '"city"' in call.arguments


def test_openai_fields_that_local_servers_refuse_are_taken(gpt: openai.OpenAI) -> None:
    """BUGS B099: https://github.com/earendil-works/pi/pull/3081"""
    answer = gpt.chat.completions.create(
        model="default",
        messages=[{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Say hello."}],
        store=False,
        reasoning_effort="low",
        max_completion_tokens=8,
        tools=[{"type": "function", "function": {"name": "w", "parameters": WEATHER, "strict": True}}],
        tool_choice="none",
    )
    assert answer.choices[0].finish_reason in ("stop", "length")


def test_openai_error_is_typed(gpt: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        gpt.chat.completions.create(model="default", messages=[{"role": "user", "content": "word " * 20_000}])
    assert caught.value.code == "context_length_exceeded"


def test_a_wrong_key_is_an_authentication_error_for_both(embedded: RunningDaemon) -> None:
    gpt = openai.OpenAI(base_url=f"{embedded.url}/v1", api_key="sk-wrong", max_retries=0)
    with gpt, pytest.raises(openai.AuthenticationError):
        gpt.models.list()
    claude = anthropic.Anthropic(base_url=embedded.url, api_key="sk-wrong", max_retries=0)
    with claude, pytest.raises(anthropic.AuthenticationError):
        claude.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])


def test_anthropic_whole(claude: anthropic.Anthropic) -> None:
    answer = claude.messages.create(
        model="default", max_tokens=12, system="Be brief.", messages=[{"role": "user", "content": "Say hello."}]
    )
    assert answer.content[0].type == "text"
    assert answer.content[0].text
    assert answer.stop_reason in ("end_turn", "max_tokens")
    assert answer.usage.output_tokens <= 12


def test_betas_nobody_here_knows_are_no_error(claude: anthropic.Anthropic) -> None:
    """BUGS B059: Claude Code sends a dozen, and some servers refuse them all for one."""
    answer = claude.messages.create(
        model="default",
        max_tokens=4,
        messages=[{"role": "user", "content": "Say hello."}],
        extra_headers={"anthropic-beta": "made-up-2026-11-01,another-2027-01-01"},
        extra_body={"context_management": {"edits": []}, "made_up": {"a": 1}},
    )
    assert answer.type == "message"


def test_anthropic_streamed(claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(
        model="default", max_tokens=16, messages=[{"role": "user", "content": "Name three fish."}]
    ) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 1
    assert final.content[0].type == "text"
    assert final.content[0].text == "".join(pieces)


def test_anthropic_forced_tool_streamed(claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(
        model="default",
        max_tokens=60,
        tools=[{"name": "get_weather", "input_schema": WEATHER}],
        tool_choice={"type": "tool", "name": "get_weather"},
        messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
    ) as stream:
        final = stream.get_final_message()
    block = final.content[-1]
    assert final.stop_reason == "tool_use"
    assert block.type == "tool_use"
    assert block.name == "get_weather"
    assert isinstance(block.input, dict)
    assert "city" in block.input


def test_anthropic_counts_tokens(claude: anthropic.Anthropic) -> None:
    counted = claude.messages.count_tokens(model="default", messages=[{"role": "user", "content": "one two three"}])
    assert counted.input_tokens > 3


def test_leaving_a_stream_is_recorded_as_cancelled(gpt: openai.OpenAI, embedded: RunningDaemon) -> None:
    stream = gpt.chat.completions.create(
        model="default", messages=[{"role": "user", "content": "Count to a million."}], stream=True
    )
    receipt = stream.response.headers["x-reef-agent-record-id"]
    next(iter(stream))
    stream.close()
    row = until(lambda: _found(embedded, receipt), "the record of a stream that was left")
    assert row["end"] == "cancelled"


def _found(daemon: RunningDaemon, receipt: str) -> dict[str, object] | None:
    status, data = daemon.control("GET", f"/reef/records/{receipt}")
    return data if status == 200 else None
