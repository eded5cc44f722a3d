"""An answer asked for alone comes out the same to the last bit, whatever else the engine does, with the real model."""

from collections.abc import Callable, Iterator

import pytest

from daemon.core.errors import ContextOverflow
from daemon.core.records import TokenSpan
from daemon.engines.base import LoraFile
from daemon.engines.llama import turns
from daemon.engines.llama.model import Model
from tests.daemon.engines.llama.bench import Bench

pytestmark = pytest.mark.engine

PROMPT = "The capital of Germany is a city with"
#: More than one step.
LONG = " ".join(f"{n} apples" for n in range(24))


@pytest.fixture
def bench(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.01)  # steps for people and in the background take turns
    bench = Bench(model, parallel=4, limit=400, background=2)
    yield bench
    bench.close()


def spans(bench: Bench, *numbers: int) -> list[TokenSpan]:
    return [end.span for end in bench.wait(*numbers) if end.span is not None]


@pytest.mark.parametrize("prompt", [PROMPT, LONG])
def test_the_same_prompt_gets_the_same_logits_alone_in_a_crowd_and_afterwards(bench: Bench, prompt: str) -> None:
    [quiet] = spans(bench, bench.submit(prompt, 8, alone=True))
    people = [bench.submit(f"{prompt} and {n} people", 24) for n in range(4)]
    behind = [bench.submit(f"{prompt} and {n} more", 24, background=True) for n in range(2)]
    crowded = spans(bench, *(bench.submit(prompt, 8, alone=True) for _ in range(3)))
    bench.wait(*people, *behind)
    [after] = spans(bench, bench.submit(prompt, 8, alone=True))
    assert crowded == [quiet] * 3
    assert after == quiet


def test_it_reads_nothing_that_others_have_read_and_takes_nothing_of_theirs(bench: Bench) -> None:
    bench.wait(bench.submit(PROMPT, 4))
    bench.wait(alone := bench.submit(PROMPT, 4, alone=True))
    bench.wait(again := bench.submit(PROMPT, 4))
    assert bench.started(alone).cached_tokens == 0
    assert bench.started(again).cached_tokens > 0


def test_who_is_cancelled_is_never_heard_of_again_and_the_next_one_answered(bench: Bench) -> None:
    first = bench.submit(PROMPT, 200, alone=True)
    second = bench.submit(PROMPT, 200, alone=True)
    bench.until(lambda: len(bench.sent.get(first, ())) > 2)
    bench.turns.cancel(second)
    bench.turns.cancel(first)
    bench.wait(bench.submit(PROMPT, 2, alone=True))
    assert not bench.done(first)
    assert second not in bench.sent


def test_a_prompt_that_does_not_fit_is_refused_with_the_engines_limit(bench: Bench) -> None:
    number = bench.submit(" ".join("apple" for _ in range(500)), 8, alone=True)
    bench.until(lambda: bench.done(number))
    [refused] = bench.sent[number]
    assert isinstance(refused, ContextOverflow)
    assert refused.limit == 400
    bench.wait(bench.submit(PROMPT, 1, alone=True))


def test_weights_that_are_asked_alone_answer_with_them_and_stay_meanwhile(
    bench: Bench, new_lora: Callable[..., LoraFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "KEPT", 0)
    loras = [new_lora(seed) for seed in (1, 2)]
    numbers = [bench.submit(PROMPT, 30, lora=lora, alone=True) for lora in loras for _ in range(2)]
    bench.wait(bench.submit("Hi", 1, lora=loras[1]))
    found = spans(bench, *numbers)
    assert [span.weights for span in found] == [loras[0].weights] * 2 + [loras[1].weights] * 2
    assert found[0] == found[1] != found[2] == found[3]
