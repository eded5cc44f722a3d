"""The vendors' own client libraries read what the renderers write, streamed and whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import openai
import pytest

from daemon.core.errors import ContextOverflow
from daemon.core.generation import EngineEvent
from daemon.core.records import ChatRequest, Dialect, Sampling
from daemon.wire.base import dialect
from tests.daemon.wire.answers import called, spoken, weighed
from tests.fakes.serving import serving

ASKED = ChatRequest("m", (), include_usage=True, sampling=Sampling(logprobs=True))


@contextmanager
def answering(body: bytes, kind: str, status: int = 200) -> Iterator[str]:
    """A server that answers everything with these bytes."""

    class Fixed(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Fixed)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


def rendered(name: Dialect, script: list[EngineEvent], *, stream: bool) -> bytes:
    renderer = dialect(name).renderer(ASKED, "rec_123", "tiny", 1_700_000_000)
    pieces = [renderer.event(event) for event in script]
    return b"".join(pieces) + renderer.finish() if stream else renderer.body()


@contextmanager
def openai_client(script: list[EngineEvent], *, stream: bool) -> Iterator[openai.OpenAI]:
    kind = "text/event-stream" if stream else "application/json"
    with (
        answering(rendered(Dialect.CHAT, script, stream=stream), kind) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        yield client


@contextmanager
def anthropic_client(script: list[EngineEvent], *, stream: bool) -> Iterator[anthropic.Anthropic]:
    kind = "text/event-stream" if stream else "application/json"
    with (
        answering(rendered(Dialect.MESSAGES, script, stream=stream), kind) as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client,
    ):
        yield client


def test_openai_reads_a_whole_answer() -> None:
    with openai_client(weighed(), stream=False) as client:
        answer = client.chat.completions.create(model="m", messages=[])
    assert answer.id == "chatcmpl-123"
    assert answer.choices[0].message.content == "Hié"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 27
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert [token.token for token in logprobs.content or []] == ["Hi", "é"]


def test_openai_reads_whole_tool_calls() -> None:
    with openai_client(called(), stream=False) as client:
        answer = client.chat.completions.create(model="m", messages=[])
    calls = answer.choices[0].message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in calls if call.type == "function"] == [
        ("call_a", '{"command": "ls"}'),
        ("call_b", '{"command": "pwd"}'),
    ]


def test_openai_reads_a_stream() -> None:
    with openai_client(spoken("Hello", " you"), stream=True) as client:
        chunks = list(client.chat.completions.create(model="m", messages=[], stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello you"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 20


def test_openais_own_accumulator_puts_a_streamed_tool_call_together() -> None:
    with (
        openai_client(called(text="Look:"), stream=True) as client,
        client.chat.completions.stream(model="m", messages=[]) as stream,
    ):
        answer = stream.get_final_completion()
    message = answer.choices[0].message
    assert message.content == "Look:"
    assert [call.function.arguments for call in message.tool_calls or []] == ['{"command": "ls"}', '{"command": "pwd"}']
    assert answer.choices[0].finish_reason == "tool_calls"


def test_anthropic_reads_a_whole_answer() -> None:
    with anthropic_client(called(text="Look:"), stream=False) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=[])
    assert answer.id == "msg_123"
    assert [block.type for block in answer.content] == ["text", "tool_use", "tool_use"]
    assert answer.content[1].to_dict()["input"] == {"command": "ls"}
    assert answer.stop_reason == "tool_use"
    assert answer.usage.cache_read_input_tokens == 12


def test_anthropics_own_accumulator_puts_a_stream_together() -> None:
    with (
        anthropic_client(called(text="Look:"), stream=True) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[]) as stream,
    ):
        answer = stream.get_final_message()
    assert [block.to_dict().get("input") for block in answer.content] == [None, {"command": "ls"}, {"command": "pwd"}]
    assert answer.stop_reason == "tool_use"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (8, 7)


def test_anthropic_reads_a_streams_text_as_it_comes() -> None:
    with (
        anthropic_client(spoken("Hello", " you"), stream=True) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[]) as stream,
    ):
        assert list(stream.text_stream) == ["Hello", " you"]


def test_openai_raises_its_own_error_for_a_prompt_too_long() -> None:
    error = ContextOverflow(9000, 8192)
    body = dialect(Dialect.CHAT).error(error.status, error.kind, error.message)
    with (
        answering(body, "application/json", 400) as url,
        openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.chat.completions.create(model="m", messages=[])
    assert caught.value.code == "context_length_exceeded"


def test_anthropic_raises_its_own_error_for_a_prompt_too_long() -> None:
    error = ContextOverflow(9000, 8192)
    body = dialect(Dialect.MESSAGES).error(error.status, error.kind, error.message)
    with (
        answering(body, "application/json", 400) as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.BadRequestError, match="prompt is too long: 9000 tokens > 8192 maximum"),
    ):
        client.messages.create(model="m", max_tokens=9, messages=[])


def test_openai_raises_on_an_error_inside_a_stream() -> None:
    body = dialect(Dialect.CHAT).error_event(502, "engine_error", "it broke")
    with (
        answering(body, "text/event-stream") as url,
        openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client,
        pytest.raises(openai.APIError, match="it broke"),
    ):
        list(client.chat.completions.create(model="m", messages=[], stream=True))


def test_anthropic_raises_on_an_error_inside_a_stream() -> None:
    body = dialect(Dialect.MESSAGES).error_event(502, "engine_error", "it broke")
    with (
        answering(body, "text/event-stream") as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError, match="it broke"),
    ):
        list(client.messages.create(model="m", max_tokens=9, messages=[], stream=True))


# -- Responses --------------------------------------------------------------------------------------


@contextmanager
def responses_client(script: list[EngineEvent], *, stream: bool) -> Iterator[openai.OpenAI]:
    kind = "text/event-stream" if stream else "application/json"
    with (
        answering(rendered(Dialect.RESPONSES, script, stream=stream), kind) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        yield client


def test_openai_reads_a_whole_response() -> None:
    with responses_client(called(text="Look:"), stream=False) as client:
        answer = client.responses.create(model="m", input="x")
    assert (answer.id, answer.output_text, answer.status) == ("resp_123", "Look:", "completed")
    assert [item.arguments for item in answer.output if item.type == "function_call"] == [
        '{"command": "ls"}',
        '{"command": "pwd"}',
    ]
    assert answer.usage is not None
    assert answer.usage.input_tokens_details.cached_tokens == 12


def test_openais_own_accumulator_puts_a_streamed_response_together() -> None:
    with (
        responses_client(called(text="Look:"), stream=True) as client,
        client.responses.stream(model="m", input="x") as stream,
    ):
        seen = [event.type for event in stream]
        answer = stream.get_final_response()
    assert answer.output_text == "Look:"
    assert [item.arguments for item in answer.output if item.type == "function_call"] == [
        '{"command": "ls"}',
        '{"command": "pwd"}',
    ]
    assert seen[0] == "response.created"
    assert seen[-1] == "response.completed"


def test_openai_reads_a_response_that_failed_in_its_stream() -> None:
    renderer = dialect(Dialect.RESPONSES).renderer(ASKED, "rec_123", "tiny", 1_700_000_000)
    script = spoken("Hel")
    body = renderer.event(script[0]) + renderer.event(script[1]) + renderer.error(502, "engine_error", "it broke")
    with (
        answering(body, "text/event-stream") as url,
        openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client,
        client.responses.stream(model="m", input="x") as stream,
    ):
        last = list(stream)[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.error.message == "it broke"
