from collections.abc import Sequence

import pytest

from daemon.core.generation import EngineEvent, Finished, TextDelta, ToolArguments, ToolStart
from daemon.core.records import ChatRequest, Message, Sampling, Text, Tool, ToolChoice
from daemon.engines.llama.generation import Generation, Prompt
from daemon.engines.llama.model import Model
from daemon.engines.llama.sampling import Defaults, Sampler

pytestmark = pytest.mark.engine

CLOCK = Tool("clock", "", {})
CALL = b'<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'


def generation(model: Model, *, tools: Sequence[Tool] = (), one_call: bool = False, **sampling: object) -> Generation:
    request = ChatRequest(
        "m",
        (Message("user", (Text("Hi"),)),),
        tools=tuple(tools),
        tool_choice=ToolChoice("auto"),
        parallel_tool_calls=not one_call,
        sampling=Sampling(**sampling),  # type: ignore[arg-type]  # checked at run time
    )
    sampler = Sampler(model.vocab, request.sampling, Defaults())
    made = Generation(1, Prompt.of(request, b"Hi", sampler), model.vocab)
    made.prompt_ids, made.cached = [1, 2, 3], 2
    return made


def play(model: Model, made: Generation, text: bytes, *, ends: bool = True) -> list[EngineEvent]:
    """Give it the tokens of a text, then the end of the turn, as if the model had chosen them."""
    tokens = model.vocab.tokenize(text)
    if ends:
        tokens += model.vocab.tokenize(b"<|im_end|>")
    events: list[EngineEvent] = []
    for token in tokens:
        events += made.push(token, -0.5, [(token, -0.5)])
        if made.finish is not None:
            break
    return events + made.end("5a")


def shown(events: Sequence[EngineEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def last(events: Sequence[EngineEvent]) -> Finished:
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    return events[-1]


def test_an_answer_is_its_text_and_its_tokens(model: Model) -> None:
    events = play(model, generation(model), "Grüße, 🦀 world".encode())
    assert shown(events) == "Grüße, 🦀 world"
    end = last(events)
    assert end.reason == "stop"
    assert (end.usage.prompt, end.usage.cached) == (3, 2)
    assert end.span is not None
    assert end.span.completion_ids == tuple(model.vocab.tokenize("Grüße, 🦀 world<|im_end|>".encode()))
    assert end.usage.completion == len(end.span.completion_ids) == len(end.span.logprobs)
    assert (end.span.prompt_ids, end.span.weights) == ((1, 2, 3), "5a")


def test_the_limit_counts_tokens(model: Model) -> None:
    end = last(play(model, generation(model, max_tokens=3), b"one two three four five"))
    assert (end.reason, end.usage.completion) == ("length", 3)


def test_an_answer_that_only_repeats_itself_ends_where_the_client_set_no_limit(model: Model) -> None:
    looping = b"The capital of France is Paris.\n" * 400
    end = last(play(model, generation(model), b"Well. " + looping))
    assert end.reason == "length"
    assert 512 <= end.usage.completion < 576
    asked_for = last(play(model, generation(model, max_tokens=2000), looping))
    assert (asked_for.reason, asked_for.usage.completion) == ("length", 2000)


def test_a_long_answer_that_is_no_loop_goes_on(model: Model) -> None:
    counted = "\n".join(f"{n} times one is {n}." for n in range(300)).encode()
    end = last(play(model, generation(model), counted))
    assert (end.reason, end.usage.completion > 1000) == ("stop", True)


def test_a_character_that_never_ends_is_shown_at_the_end(model: Model) -> None:
    crab = model.vocab.tokenize("🦀".encode())
    assert len(crab) > 1
    made = generation(model)
    assert made.push(crab[0], -1.0, []) == []
    made.finish = "length"
    assert "�" in shown(made.end("5a"))


def test_a_stop_string_over_several_tokens_cuts_the_text(model: Model) -> None:
    events = play(model, generation(model, stop=("three four",)), b"one two three four five")
    assert shown(events) == "one two "
    assert (last(events).reason, last(events).stop_sequence) == ("stop_sequence", "three four")


def test_text_held_for_a_stop_string_that_never_came_is_shown(model: Model) -> None:
    assert (
        shown(play(model, generation(model, stop=("twelve monkeys",)), b"one two twelve mon")) == "one two twelve mon"
    )


def test_a_special_token_is_not_shown(model: Model) -> None:
    assert shown(play(model, generation(model), b"a<|im_start|>b")) == "ab"


def test_a_call_ends_with_its_own_reason(model: Model) -> None:
    events = play(model, generation(model, tools=[CLOCK]), b"Let me see. " + CALL)
    assert shown(events) == "Let me see. "
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [ToolStart, ToolArguments, Finished]
    assert last(events).reason == "tool_calls"


def test_where_one_call_is_asked_for_the_first_ends_the_answer(model: Model) -> None:
    both = CALL + b"\n" + CALL
    many = play(model, generation(model, tools=[CLOCK]), both)
    one = play(model, generation(model, tools=[CLOCK], one_call=True), both)
    assert sum(isinstance(event, ToolStart) for event in many) == 2
    assert sum(isinstance(event, ToolStart) for event in one) == 1
    assert last(one).reason == "tool_calls"
    assert last(one).usage.completion < last(many).usage.completion


def test_a_call_cut_by_the_limit_is_told_with_the_limit(model: Model) -> None:
    events = play(model, generation(model, tools=[CLOCK], max_tokens=16), CALL.replace(b"{}", b'{"a": "' + b"x " * 50))
    assert [event.name for event in events if isinstance(event, ToolStart)] == ["clock"]
    assert last(events).reason == "length"


def test_log_probabilities_travel_with_the_text_they_belong_to(model: Model) -> None:
    events = play(model, generation(model, logprobs=True, top_logprobs=1, stop=("zzz",)), "one 🦀 two".encode())
    told = [token for event in events if isinstance(event, TextDelta) for token in event.tokens]
    end = last(events)
    assert end.span is not None
    assert [token.id for token in told] == list(end.span.completion_ids[:-1])  # all but the end of the turn
    assert all(token.top == ((token.id, token.text, -0.5),) for token in told)


def test_tokens_whose_text_was_cut_are_still_told(model: Model) -> None:
    events = play(model, generation(model, logprobs=True, stop=("two",)), b"one two three")
    told = [token for event in events if isinstance(event, TextDelta) for token in event.tokens]
    assert len(told) == last(events).usage.completion
