from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadRequest, BadWeights, ContextOverflow, EngineError, EngineUnavailable
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta, TokenLogprob, ToolArguments, ToolStart
from daemon.core.records import (
    ChatRequest,
    Image,
    Message,
    Sampling,
    Text,
    Thinking,
    TokenSpan,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
    Usage,
)
from daemon.engines.base import LoraFile
from daemon.engines.llama.frames import (
    HEADER,
    Loaded,
    build,
    decode_error,
    decode_event,
    decode_lora,
    decode_request,
    encode_error,
    encode_event,
    encode_lora,
    encode_request,
    pack,
    unpack,
)


def over_the_pipe(message: object) -> dict[str, Any]:
    frame = pack(message)
    (size,) = HEADER.unpack(frame[: HEADER.size])
    assert size == len(frame) - HEADER.size
    return unpack(frame[HEADER.size :])


def test_a_request_comes_out_as_it_went_in() -> None:
    request = ChatRequest(
        model="m",
        messages=(
            Message("system", (Text("é🦀"),)),
            Message("user", (Text("a"), Image("image/png", "sha256:00"))),
            Message("assistant", (Thinking("hm"), Text(""), ToolUse("call_1", "write", '{"a": 1}'))),
            Message("tool", (ToolResult("call_1", "done", is_error=True),)),
        ),
        tools=(Tool("write", "w", {"type": "object", "properties": {"a": {"enum": [1, None]}}}),),
        tool_choice=ToolChoice("named", "write"),
        parallel_tool_calls=False,
        sampling=Sampling(max_tokens=3, temperature=0.5, seed=7, stop=("x", "y"), logprobs=True, top_logprobs=2),
        response_schema={},
    )
    assert decode_request(over_the_pipe(encode_request(request))) == request


@pytest.mark.parametrize("lora", [None, LoraFile(Path("/a é/adapter.gguf"), "ab" * 32, "cd" * 32)])
def test_a_lora_comes_out_as_it_went_in(lora: LoraFile | None) -> None:
    assert decode_lora(over_the_pipe({"lora": encode_lora(lora)})["lora"]) == lora


def test_what_loading_found_comes_out_as_it_went_in() -> None:
    name, payload = encode_event(Loaded(0.25))
    assert (name, build(Loaded, over_the_pipe({"payload": payload})["payload"])) == ("Loaded", Loaded(0.25))


@pytest.mark.parametrize(
    "event",
    [
        Started(5, 2),
        TextDelta("é", (TokenLogprob(1, "é", -0.5, ((1, "é", -0.5), (2, "e", -1.5))),)),
        ToolStart(0, "call_1", "write"),
        ToolArguments(0, "{}"),
        Finished("stop_sequence", Usage(5, 2, 1), TokenSpan((1, 2), (3,), (-0.25,), "ab"), "x"),
        Finished("length", Usage()),
    ],
)
def test_an_event_comes_out_as_it_went_in(event: EngineEvent) -> None:
    name, payload = encode_event(event)
    assert decode_event(str(name), over_the_pipe({"payload": payload})["payload"]) == event


@pytest.mark.parametrize(
    "error",
    [
        EngineError("a", hint="b"),
        EngineUnavailable("c"),
        BadRequest("d", hint="e"),
        BadWeights("f", hint="g"),
        ContextOverflow(9000, 8192),
    ],
)
def test_an_error_keeps_its_class_message_and_hint(error: EngineError) -> None:
    came = decode_error(over_the_pipe(encode_error(error)))
    assert type(came) is type(error)
    assert (came.message, came.hint) == (error.message, error.hint)
    if isinstance(error, ContextOverflow):
        assert isinstance(came, ContextOverflow)
        assert (came.tokens, came.limit) == (9000, 8192)
