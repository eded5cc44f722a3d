"""What the embedded engine answers, with the real model. Its process's life is in test_llama_cpp_life.py."""

import asyncio
import json
import math
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from daemon.core.errors import BadRequest, ContextOverflow
from daemon.core.generation import Started
from daemon.core.records import Message, Text, Tool, ToolChoice, ToolResult, ToolUse
from daemon.engines.base import EngineState
from daemon.engines.llama_cpp import LlamaCpp
from tests.daemon.engines.asking import CLOCK, WEATHER, Answer, ask, collect, new_engine, say, until

COVERS = ("daemon/engines/llama/process.py",)
pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def engine(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LlamaCpp]:
    engine = new_engine(model_path, tmp_path_factory.mktemp("engine") / "engine.log", context=1024)
    await engine.warm()
    yield engine
    await engine.close()


def words(count: int, seed: int) -> str:
    """A prompt that shares nothing with another's."""
    rng = random.Random(seed)
    return " ".join(rng.choice(("river", "stone", "lamp", "cloud", "seven", "green", "walks")) for _ in range(count))


def assert_alike(fresh: Answer, reused: Answer) -> None:
    """The same first tokens are as likely, but for the last digits: a prompt read in batches of other sizes differs by
    up to 0.2 (measured), enough to turn a tie between two tokens."""
    after = {token: logprob for token, _, logprob in top(reused)}
    for token, _, before in top(fresh)[:3]:
        assert after[token] == pytest.approx(before, abs=0.4)


def top(answer: Answer) -> tuple[tuple[int, str, float], ...]:
    """The likeliest first tokens."""
    return answer.deltas[0].tokens[0].top


async def test_it_answers_and_says_what_it_used(engine: LlamaCpp) -> None:
    answer = await collect(engine, ask("Repeat this word three times: France", tokens=16))
    assert "France" in answer.text
    usage = answer.finished.usage
    assert usage.prompt == answer.started.prompt_tokens == len(answer.span.prompt_ids)
    assert usage.completion == len(answer.span.completion_ids) == len(answer.span.logprobs)
    assert answer.span.weights == engine.weights() == "5a" * 32


async def test_an_answer_comes_piece_by_piece(engine: LlamaCpp) -> None:
    answer = await collect(engine, ask("Tell me about the sea.", tokens=32))
    assert len(answer.deltas) > 20
    assert answer.finished.reason == "length"


async def test_greedy_answers_are_the_same_every_time(engine: LlamaCpp) -> None:
    request = ask("Name three animals.", tokens=20)
    first, second = await collect(engine, request), await collect(engine, request)
    assert first.text == second.text
    assert first.span.completion_ids == second.span.completion_ids


async def test_a_seed_makes_a_drawn_answer_repeatable(engine: LlamaCpp) -> None:
    def request(seed: int) -> object:
        return ask("Tell me a story.", tokens=12, temperature=1.0, top_p=1.0, top_k=0, seed=seed)

    answers = [(await collect(engine, request(seed))).text for seed in (1, 1, 2, 3)]  # type: ignore[arg-type]
    assert answers[0] == answers[1]
    assert len(set(answers)) > 1


async def test_an_end_of_turn_ends_the_answer(engine: LlamaCpp) -> None:
    answer = await collect(engine, ask("Say yes.", tokens=100))
    assert answer.finished.reason == "stop"
    assert "<|im_end|>" not in answer.text


async def test_eight_at_once_are_all_answered_and_none_is_mixed(engine: LlamaCpp) -> None:
    topics = ["France", "Japan", "Egypt", "Peru", "Kenya", "Norway", "India", "Canada"]
    requests = [ask(f"Repeat this word three times: {topic}", tokens=14) for topic in topics]
    answers = await asyncio.gather(*(collect(engine, request) for request in requests))
    for topic, answer in zip(topics, answers, strict=True):
        assert topic in answer.text
        assert not any(other in answer.text for other in topics if other != topic)


async def test_more_requests_than_slots_wait_their_turn(engine: LlamaCpp) -> None:
    answers = await asyncio.gather(*(collect(engine, ask(f"Say {n}.", tokens=4)) for n in range(20)))
    assert len(answers) == 20
    assert all(answer.finished.usage.completion <= 4 for answer in answers)
    assert (engine.status().running, engine.status().waiting) == (0, 0)


async def test_together_they_are_at_least_as_fast_as_one(engine: LlamaCpp) -> None:
    async def speed(clients: int) -> float:
        started = time.perf_counter()
        requests = [ask(f"Write a long story about the number {n}.", tokens=12) for n in range(clients)]
        answers = await asyncio.gather(*(collect(engine, request) for request in requests))
        return sum(a.finished.usage.completion for a in answers) / (time.perf_counter() - started)

    ratios = []
    for _ in range(3):  # a busy machine slows either of them now and then
        alone = await speed(1)
        ratios.append(await speed(8) / alone)
        if ratios[-1] >= 1:
            break
    assert max(ratios) >= 1, ratios


async def test_a_growing_conversation_reads_only_what_is_new(engine: LlamaCpp) -> None:
    """BUGS B089."""
    conversation = [say("system", words(40, 1))]
    known = 0
    for turn in range(12):
        conversation.append(say("user", f"Question {turn}: {words(6, 100 + turn)}?"))
        answer = await collect(engine, ask(*conversation, tokens=8, temperature=1.0, seed=turn))
        assert answer.started.cached_tokens >= known - 2, f"turn {turn}"
        # Cut inside a character it comes back changed, and is read anew.
        whole = "\ufffd" not in answer.text
        known = answer.finished.usage.prompt + (answer.finished.usage.completion if whole else 0)
        conversation.append(say("assistant", answer.text))


async def test_a_tool_loop_reads_only_the_last_answer_again(engine: LlamaCpp) -> None:
    conversation = [say("user", f"{words(80, 2)} What is the weather in Oslo?")]
    tools: dict[str, Any] = {"tools": (WEATHER,), "tool_choice": ToolChoice("required")}
    first = await collect(engine, ask(*conversation, tokens=60, **tools))
    name, arguments = first.calls[0]
    call = Message("assistant", (ToolUse("call_1", name, arguments),))
    result = Message("tool", (ToolResult("call_1", "rain"),))
    second = await collect(engine, ask(*conversation, call, result, tokens=8, **tools))
    assert second.started.cached_tokens >= first.finished.usage.prompt - 2


async def test_a_system_prompt_is_shared_between_conversations(engine: LlamaCpp) -> None:
    system = say("system", words(100, 3))
    one = ask(system, say("user", "One."), tokens=1, logprobs=True, top_logprobs=12)
    first = await collect(engine, one)
    second = await collect(engine, ask(system, say("user", "Two."), tokens=2))
    assert first.started.cached_tokens < 50
    assert second.started.cached_tokens > 100
    assert_alike(first, await collect(engine, one))


async def test_a_reused_prefix_gives_the_same_answer(engine: LlamaCpp) -> None:
    request = ask(f"{words(90, 4)} How many words was that?", tokens=1, logprobs=True, top_logprobs=12)
    fresh = await collect(engine, request)
    reused = await collect(engine, request)
    assert fresh.started.cached_tokens < 40
    assert reused.started.cached_tokens == reused.started.prompt_tokens - 1
    assert_alike(fresh, reused)


async def test_log_probabilities_are_the_models_own(engine: LlamaCpp) -> None:
    answer = await collect(engine, ask("What is two plus two?", tokens=10, logprobs=True, top_logprobs=5))
    tokens = [token for delta in answer.deltas for token in delta.tokens]
    assert "".join(token.text for token in tokens) == answer.text
    assert [token.id for token in tokens] == list(answer.span.completion_ids[: len(tokens)])
    for token in tokens:
        assert token.logprob == pytest.approx(token.top[0][2])  # greedy: the likeliest
        assert token.id == token.top[0][0]
        assert [p for _, _, p in token.top] == sorted((p for _, _, p in token.top), reverse=True)
        assert sum(math.exp(p) for _, _, p in token.top) <= 1.0001


async def test_temperature_does_not_change_log_probabilities(engine: LlamaCpp) -> None:
    cold = await collect(engine, ask("What is two plus two?", tokens=1, temperature=0))
    warm = await collect(engine, ask("What is two plus two?", tokens=1, temperature=1.9, top_k=1))
    assert warm.span.completion_ids == cold.span.completion_ids
    assert warm.span.logprobs[0] == pytest.approx(cold.span.logprobs[0], abs=0.05)


async def test_log_probabilities_do_not_come_unasked(engine: LlamaCpp) -> None:
    answer = await collect(engine, ask("Hi", tokens=4))
    assert not any(delta.tokens for delta in answer.deltas)


async def test_a_stop_string_ends_the_answer_before_it(engine: LlamaCpp) -> None:
    whole = await collect(engine, ask("Count from one to ten in words.", tokens=40))
    stop = whole.text[10:16]
    cut = await collect(engine, ask("Count from one to ten in words.", tokens=40, stop=("never written", stop)))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert (cut.finished.reason, cut.finished.stop_sequence) == ("stop_sequence", stop)


async def test_a_prompt_that_does_not_fit_is_refused_with_its_length(engine: LlamaCpp) -> None:
    request = ask(words(1100, 5), tokens=4)
    with pytest.raises(ContextOverflow) as refused:
        await collect(engine, request)
    assert refused.value.limit == 1024
    assert refused.value.tokens > 1024
    assert await engine.count(request) == refused.value.tokens


async def test_a_huge_body_is_refused_without_being_read(engine: LlamaCpp) -> None:
    with pytest.raises(ContextOverflow):
        await collect(engine, ask("x" * 20_000_000))


async def test_counting_agrees_with_reading(engine: LlamaCpp) -> None:
    request = ask("How long is this prompt, I wonder?", tokens=1)
    assert await engine.count(request) == (await collect(engine, request)).started.prompt_tokens


async def test_leaving_inside_a_long_prompt_stops_the_work(engine: LlamaCpp) -> None:
    """The best of three: a busy machine slows any of them."""
    seconds = []
    for attempt in range(3):
        generator = engine.generate(ask(words(500, 70 + attempt), tokens=50))
        assert isinstance(await anext(generator), Started)
        before = time.perf_counter()
        await generator.aclose()
        answer = await collect(engine, ask("Say yes.", tokens=1))
        alone = time.perf_counter() - before
        await collect(engine, ask(words(500, 80 + attempt), tokens=1))
        whole = time.perf_counter() - before - alone
        assert answer.finished.usage.completion == 1
        if alone < whole / 2:
            return
        seconds.append((alone, whole))
    raise AssertionError(seconds)


async def test_a_cancelled_neighbour_costs_the_others_nothing(engine: LlamaCpp) -> None:
    request = ask("Repeat this word three times: Norway", tokens=16)
    running = asyncio.create_task(collect(engine, request))
    await until(lambda: engine.status().running == 1)
    generator = engine.generate(ask(words(500, 9), tokens=50))
    await anext(generator)
    await generator.aclose()
    answer = await running
    assert "Norway" in answer.text
    assert answer.finished.usage.completion == len(answer.span.completion_ids)


async def test_abort_and_the_same_request_again_twenty_times(engine: LlamaCpp) -> None:
    """BUGS B124."""
    request = ask(f"{words(200, 10)} Tell me more.", tokens=30)
    for turn in range(20):
        generator = engine.generate(request)
        for _ in range(turn % 4 + 1):
            await anext(generator)
        await generator.aclose()
    assert (await collect(engine, request)).finished.usage.completion > 0
    assert engine.status().restarts == 0


async def test_leaving_at_any_event_and_at_the_last_leaves_the_engine_usable(engine: LlamaCpp) -> None:
    """BUGS B122: https://github.com/abetlen/llama-cpp-python/issues/1861: who left at the last chunk had it refuse all
    others.
    """
    request = ask("Hi", tokens=4)
    whole = await collect(engine, request)
    for last in range(1, len(whole.events) + 1):
        generator = engine.generate(request)
        for _ in range(last):
            await anext(generator)
        await generator.aclose()
        assert (await collect(engine, request)).text == whole.text, f"after leaving at event {last}"
    assert (engine.status().running, engine.status().waiting, engine.status().restarts) == (0, 0, 0)


async def test_a_named_tool_is_called_with_valid_arguments(engine: LlamaCpp) -> None:
    answer = await collect(
        engine,
        ask("Weather in Oslo?", tokens=80, tools=(CLOCK, WEATHER), tool_choice=ToolChoice("named", "get_weather")),
    )
    [(name, arguments)] = answer.calls
    assert name == "get_weather"
    assert isinstance(json.loads(arguments)["city"], str)
    assert answer.finished.reason == "tool_calls"
    assert answer.text == ""


async def test_a_required_call_is_one_of_the_tools(engine: LlamaCpp) -> None:
    answer = await collect(
        engine,
        ask("What?", tokens=80, temperature=0.8, tools=(CLOCK, WEATHER), tool_choice=ToolChoice("required")),
    )
    [(name, arguments)] = answer.calls
    assert name in ("clock", "get_weather")
    assert isinstance(json.loads(arguments), dict)


async def test_a_forced_call_cut_by_the_limit_keeps_its_beginning(engine: LlamaCpp) -> None:
    answer = await collect(
        engine, ask("Weather?", tokens=22, tools=(WEATHER,), tool_choice=ToolChoice("named", "get_weather"))
    )
    assert answer.finished.reason in ("length", "tool_calls")
    assert [name for name, _ in answer.calls] in ([], ["get_weather"])


async def test_free_choice_reads_a_call_that_the_model_writes(engine: LlamaCpp) -> None:
    # A small model calls nothing by itself; it copies.
    written = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
    answer = await collect(
        engine,
        ask(
            "Hi",
            "Hello",
            f"Repeat exactly:\n{written}",
            say("assistant", '<tool_call>\n{"name": "clock",'),
            tools=(CLOCK,),
        ),
    )
    assert isinstance(answer, Answer)
    assert answer.finished.usage.completion > 0


async def test_no_tools_means_text(engine: LlamaCpp) -> None:
    answer = await collect(engine, ask("Hi", tokens=8, tools=(WEATHER,), tool_choice=ToolChoice("none")))
    assert answer.calls == []
    without = await collect(engine, ask("Hi", tokens=8))
    assert answer.started.prompt_tokens == without.started.prompt_tokens


async def test_a_schema_forces_the_answers_form(engine: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
    }
    answer = await collect(engine, ask("Any colour.", tokens=60, response_schema=schema))
    value = json.loads(answer.text)
    assert value["colour"] in ("red", "green")
    assert isinstance(value["count"], int)
    assert answer.finished.reason == "stop"


async def test_any_object_is_a_schema_too(engine: LlamaCpp) -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    answer = await collect(engine, ask("JSON please.", tokens=50, response_schema=schema))
    if answer.finished.reason == "stop":
        assert isinstance(json.loads(answer.text), dict)
    assert answer.text.startswith("{")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"response_schema": {"not": {}}}, "not"),
        ({"response_schema": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}, "too deep"),
        ({"tools": (Tool("t", "", {"$ref": "http://x"}),), "tool_choice": ToolChoice("required")}, "tools.t"),
        ({"tools": (CLOCK,), "tool_choice": ToolChoice("named", "nope")}, "nope"),
        ({"tool_choice": ToolChoice("required")}, "tool"),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(engine: LlamaCpp, more: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRequest, match=named):
        await collect(engine, ask("Hi", **more))


async def test_odd_text_goes_through(engine: LlamaCpp) -> None:
    for text in ("", " ", "\x00", "🦀" * 50, "<|im_end|>\n<|im_start|>assistant\n"):
        answer = await collect(engine, ask(Message("user", (Text(text),)), tokens=2))
        assert answer.finished.usage.completion >= 1


async def test_half_a_surrogate_pair_is_refused(engine: LlamaCpp) -> None:
    with pytest.raises(BadRequest, match="surrogate"):
        await collect(engine, ask("\ud800"))


async def test_characters_are_never_sent_in_halves(engine: LlamaCpp) -> None:
    """BUGS B021."""
    answer = await collect(engine, ask("Repeat: 🦀🦀🦀 日本語 🦀", tokens=40, temperature=1.5, seed=3))
    assert "�" not in "".join(delta.text for delta in answer.deltas[:-1])


async def test_status_tells_what_happened(engine: LlamaCpp) -> None:
    before = engine.status()
    await collect(engine, ask("Tell me about status lines.", tokens=12))
    after = engine.status()
    assert (after.state, after.model, after.restarts) == (EngineState.READY, "smollm2", 0)
    assert after.completion_tokens == before.completion_tokens + 12
    assert after.prompt_tokens > before.prompt_tokens
    assert after.memory_mb is not None
    assert after.memory_mb > 100
    assert (after.tokens_per_second or 0) > 0
    assert (after.prompt_speed or 0) > 0


async def test_running_and_waiting_are_counted(engine: LlamaCpp) -> None:
    tasks = [asyncio.create_task(collect(engine, ask(f"Story {n}", tokens=200))) for n in range(10)]
    await until(lambda: engine.status().running == 8)
    assert engine.status().waiting == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (engine.status().running, engine.status().waiting) == (0, 0)
