"""The scheduler with a real context, stepped by a thread as in the worker, its memory small enough to run full."""

from collections.abc import Callable, Iterator

import pytest

from daemon.core.errors import BadRequest, ContextOverflow
from daemon.engines.llama.context import Share
from daemon.engines.llama.model import Model
from daemon.engines.llama.scheduler import Speed
from daemon.engines.llama.slots import Slot
from tests.daemon.engines.llama.bench import LIMIT, Bench

pytestmark = pytest.mark.engine


@pytest.fixture
def new_bench(model: Model) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(parallel: int, limit: int = LIMIT) -> Bench:
        made.append(Bench(model, parallel, limit))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(new_bench: Callable[..., Bench]) -> Bench:
    return new_bench(4)


def story(number: int, length: int = 60) -> str:
    return " ".join(f"{number * 100 + index} apples and" for index in range(length // 6))


def test_requests_beyond_the_memory_are_all_answered(bench: Bench) -> None:
    # 4 slots of up to 120 tokens in a memory of 256: they run full and must take turns.
    numbers = [bench.submit(story(n, 48), tokens=40) for n in range(8)]
    ends = bench.wait(*numbers)
    assert all(end.usage.completion > 0 for end in ends)
    for number, end in zip(numbers, ends, strict=True):
        assert end.usage.prompt + end.usage.completion <= LIMIT + 1
        assert bench.started(number).prompt_tokens == end.usage.prompt


def test_a_slot_whose_memory_was_taken_goes_on_as_if_nothing_had_happened(new_bench: Callable[..., Bench]) -> None:
    alone = new_bench(parallel=1)
    expected = []
    for n in range(4):
        alone.wait(number := alone.submit(story(n, 48), tokens=24))
        expected.append(alone.text(number))
    crowded = new_bench(parallel=4)
    numbers = [crowded.submit(story(n, 48), tokens=24) for n in range(4)]
    crowded.wait(*numbers)
    same = sum(crowded.text(number)[:12] == text[:12] for number, text in zip(numbers, expected, strict=True))
    assert same >= 3  # batches add up in another order: one in four may choose another word where two are as likely


def test_idle_conversations_give_way_to_running_ones(bench: Bench) -> None:
    for n in range(4):
        bench.wait(bench.submit(story(n, 66), tokens=2))
    [end] = bench.wait(bench.submit(story(9, 72), tokens=20))
    assert end.usage.completion > 0


def test_the_latest_conversations_are_kept(bench: Bench) -> None:
    bench.wait(bench.submit(story(1), tokens=4))
    bench.wait(bench.submit(story(2), tokens=4))
    for n in (1, 2):
        bench.wait(number := bench.submit(story(n) + " now", tokens=4))
        assert bench.started(number).cached_tokens > 20


def test_a_conversation_is_not_clobbered_by_one_with_the_same_beginning(bench: Bench) -> None:
    beginning = "You are a helpful assistant who knows apples well. "
    bench.wait(bench.submit(beginning + story(1), tokens=2))
    bench.wait(other := bench.submit(beginning + "Hi", tokens=2))
    bench.wait(again := bench.submit(beginning + story(1) + " more", tokens=2))
    assert bench.started(other).cached_tokens >= 8
    assert bench.started(again).cached_tokens > 40


def test_a_prompt_that_does_not_fit_is_refused_and_the_next_is_answered(bench: Bench) -> None:
    number = bench.submit(story(1, 240))
    bench.until(lambda: bench.done(number))
    refused = bench.sent[number][0]
    assert isinstance(refused, ContextOverflow)
    assert refused.limit == LIMIT
    bench.wait(bench.submit("Hi"))


def test_an_empty_prompt_is_refused(bench: Bench) -> None:
    number = bench.submit("")
    bench.until(lambda: bench.done(number))
    assert isinstance(bench.sent[number][0], BadRequest)
    bench.wait(bench.submit("Hi", tokens=1))


def test_the_answer_ends_where_the_context_is_full(bench: Bench) -> None:
    [end] = bench.wait(bench.submit(story(3, 90), tokens=1000))
    assert end.usage.prompt + end.usage.completion == LIMIT or end.reason == "stop"


def test_first_come_first_served(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(parallel=1)
    numbers = [bench.submit(story(n, 12), tokens=3) for n in range(5)]
    bench.wait(*numbers)
    assert list(bench.sent) == numbers


def test_a_cancelled_request_is_never_heard_of_again(bench: Bench) -> None:
    number = bench.submit("Once upon a time", tokens=100)
    bench.until(lambda: len(bench.sent.get(number, ())) > 3)
    bench.turns.cancel(number)
    bench.wait(bench.submit("Hi", tokens=2))
    heard = len(bench.sent[number])
    bench.wait(bench.submit("Hi again", tokens=2))
    assert len(bench.sent[number]) == heard
    assert not bench.done(number)


def test_a_request_cancelled_while_it_waits_never_starts(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(parallel=1)
    first = bench.submit("Once upon a time", tokens=30)
    second = bench.submit("Twice", tokens=3)
    bench.turns.cancel(second)
    bench.wait(first)
    bench.wait(bench.submit("Hi", tokens=1))
    assert second not in bench.sent


def test_an_aborted_prompt_keeps_what_was_read_and_the_neighbours_go_on(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(parallel=2, limit=600)
    neighbour = bench.submit("Once upon a time", tokens=60)
    bench.until(lambda: len(bench.sent.get(neighbour, ())) > 1)
    long = bench.submit(story(5, 400), tokens=2)
    bench.until(lambda: long in bench.sent)
    bench.turns.cancel(long)
    [end] = bench.wait(neighbour)
    assert end.usage.completion == len(end.span.completion_ids if end.span else ())
    [again] = bench.wait(bench.submit(story(5, 400), tokens=2))
    assert again.usage.completion == 2


def test_streams_go_on_while_a_long_prompt_is_read(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(parallel=2, limit=600)
    stream = bench.submit("Once upon a time", tokens=200)
    bench.until(lambda: len(bench.sent.get(stream, ())) > 1)
    before = len(bench.sent[stream])
    bench.wait(bench.submit(story(6, 400), tokens=1))
    assert len(bench.sent[stream]) - before >= 3


def test_speed_tells_reading_from_decoding() -> None:
    speed = Speed()
    slot = Slot(0)
    speed.note([Share(slot, 1), Share(slot, 1)], 0.1)
    assert speed.prompt is None
    assert speed.decode == pytest.approx(20)
    speed.note([Share(slot, 1), Share(slot, 100)], 0.5)
    assert speed.prompt == pytest.approx(200)
    speed.note([Share(slot, 5)], 1.0)
    assert speed.prompt == pytest.approx(200)  # too few to tell
