"""Several sets of weights at once on one thread, with the real model and adapters that say something else each."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from daemon.core.errors import BadWeights, EngineError
from daemon.core.generation import Finished
from daemon.core.records import TokenSpan
from daemon.engines.base import LoraFile
from daemon.engines.llama import scheduler, turns
from daemon.engines.llama.model import Model
from daemon.engines.llama.turns import KEPT
from tests.daemon.engines.llama.bench import Bench
from tests.fakes.lora import Tensors
from tests.fakes.reader import Reader

pytestmark = pytest.mark.engine

PROMPT = "The quick brown fox jumps over the"


@pytest.fixture(scope="module")
def loras(new_lora: Callable[..., LoraFile]) -> list[LoraFile]:
    return [new_lora(seed) for seed in range(KEPT + 2)]


@pytest.fixture
def new_bench(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 1e9)  # how fast this machine is decides nothing here
    made: list[Bench] = []

    def make(parallel: int = 2, limit: int = 120, background: int = 0) -> Bench:
        made.append(Bench(model, parallel, limit, background))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def span(end: Finished) -> TokenSpan:
    assert end.span is not None
    return end.span


def test_each_record_holds_the_digest_that_made_it(
    new_bench: Callable[..., Bench], model: Model, loras: list[LoraFile]
) -> None:
    bench = new_bench()
    weights = [None, *loras[:2]]
    numbers = [bench.submit(PROMPT, 12, lora=lora) for lora in weights]
    spans = [span(end) for end in bench.wait(*numbers)]
    reader = Reader(model)
    for made, lora in zip(spans, weights, strict=True):
        assert made.weights == (lora.weights if lora else model.digest)
        assert [reader.made_by(made, other) for other in weights] == [other is lora for other in weights]


def test_weights_side_by_side_answer_as_they_do_alone(new_bench: Callable[..., Bench], loras: list[LoraFile]) -> None:
    weights = [None, loras[0], loras[1]]
    alone = []
    for lora in weights:
        bench = new_bench()
        bench.wait(number := bench.submit(PROMPT, 10, lora=lora))
        alone.append(bench.text(number))
    assert len(set(alone)) == 3
    together = new_bench()
    for _ in range(3):
        numbers = [together.submit(PROMPT, 10, lora=lora) for lora in weights]
        together.wait(*numbers)
        assert [together.text(number) for number in numbers] == alone


def test_nothing_that_one_has_read_is_used_by_another(new_bench: Callable[..., Bench], loras: list[LoraFile]) -> None:
    bench = new_bench()
    bench.wait(bench.submit(PROMPT, 2))
    bench.wait(other := bench.submit(PROMPT, 2, lora=loras[0]))
    bench.wait(again := bench.submit(PROMPT, 2, lora=loras[0]), back := bench.submit(PROMPT, 2))
    assert bench.started(other).cached_tokens == 0
    assert bench.started(again).cached_tokens > 0
    assert bench.started(back).cached_tokens > 0


def test_contexts_take_turns(new_bench: Callable[..., Bench], loras: list[LoraFile]) -> None:
    bench = new_bench()
    bench.load(loras[0])
    bench.wait(*(numbers := [bench.submit(PROMPT, 30, lora=lora) for lora in (None, loras[0])]))
    told = [number for number in bench.order if number in numbers]
    both = told[told.index(numbers[1]) : len(told) - told[::-1].index(numbers[0])]
    longest = max(
        len(run) for run in "".join("ab"[number == numbers[1]] for number in both).replace("ab", "a b").split()
    )
    assert longest <= 4, "one waited for the other"


def test_loading_says_how_much_it_changes_and_only_then_serves(
    new_bench: Callable[..., Bench], new_lora: Callable[..., LoraFile]
) -> None:
    bench = new_bench()
    assert bench.turns.loras == 0
    little, much = bench.load(new_lora(5, 0.01)), bench.load(new_lora(5, 0.1))
    assert 0 < little < much
    assert bench.turns.loras == 2


def test_loading_again_looks_at_the_file_again(
    new_bench: Callable[..., Bench], new_lora: Callable[..., LoraFile]
) -> None:
    bench, lora = new_bench(), new_lora(6)
    assert bench.load(lora) == bench.load(lora)
    assert bench.turns.loras == 1
    lora.path.unlink()
    with pytest.raises(BadWeights, match="cannot be read"):
        bench.load(lora)
    bench.wait(bench.submit(PROMPT, 1, lora=lora))  # what is in memory still serves


def test_the_same_weights_from_two_paths_are_held_once(
    new_bench: Callable[..., Bench], loras: list[LoraFile], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(loras[0].path.read_bytes())
    bench = new_bench()
    other = LoraFile(copy, loras[0].sha256, loras[0].base)
    bench.wait(bench.submit(PROMPT, 1, lora=loras[0]), bench.submit(PROMPT, 1, lora=other))
    assert bench.turns.loras == 1


def test_an_adapter_without_effect_is_refused_and_the_next_request_answered(
    new_bench: Callable[..., Bench], new_lora: Callable[..., LoraFile]
) -> None:
    bench, nothing = new_bench(), new_lora(1, 0.0)
    with pytest.raises(BadWeights, match="no effect"):
        bench.load(nothing)
    number = bench.submit(PROMPT, 1, lora=nothing)
    bench.until(lambda: bench.done(number))
    assert isinstance(bench.sent[number][0], BadWeights)
    bench.wait(bench.submit(PROMPT, 1))
    assert bench.turns.loras == 0


def test_an_adapter_that_makes_infinite_numbers_is_refused(
    new_bench: Callable[..., Bench], new_lora: Callable[..., LoraFile]
) -> None:
    def explode(tensors: Tensors) -> None:
        for value in tensors.values():
            value *= 30_000 / np.abs(value).max()  # each is finite as a 16-bit float

    bench = new_bench()
    with pytest.raises(BadWeights, match="NaN or infinite"):
        bench.load(new_lora(1, 1.0, explode))
    bench.wait(bench.submit(PROMPT, 1))


def test_a_damaged_file_costs_only_who_asked_for_it(
    new_bench: Callable[..., Bench], loras: list[LoraFile], tmp_path: Path
) -> None:
    bench = new_bench()
    stream = bench.submit(PROMPT, 30, lora=loras[0])
    bad = bench.submit(PROMPT, 4, lora=LoraFile(tmp_path / "no.gguf", "00" * 32, loras[0].base))
    [end] = bench.wait(stream)
    bench.until(lambda: bench.done(bad))
    assert isinstance(bench.sent[bad][0], EngineError)
    assert end.usage.completion > 0


def test_unused_weights_are_given_back_and_come_again(new_bench: Callable[..., Bench], loras: list[LoraFile]) -> None:
    bench = new_bench()
    texts = []
    for lora in loras:
        bench.wait(number := bench.submit(PROMPT, 6, lora=lora))
        texts.append(bench.text(number))
    assert bench.turns.loras == KEPT
    bench.wait(number := bench.submit(PROMPT, 6, lora=loras[0]))
    assert bench.started(number).cached_tokens == 0
    assert bench.text(number) == texts[0]


def test_weights_unused_for_long_are_given_back_but_the_latest(
    new_bench: Callable[..., Bench], loras: list[LoraFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.engines.llama.turns._UNUSED_SECONDS", 0.0)
    bench = new_bench()
    for lora in loras[:3]:
        bench.wait(bench.submit(PROMPT, 1, lora=lora))
    assert bench.turns.loras == 1
    bench.wait(bench.submit(PROMPT, 1, lora=loras[2]))
    bench.wait(bench.submit(PROMPT, 1))
    bench.wait(bench.submit(PROMPT, 1))
    assert bench.turns.loras == 0


def test_weights_with_work_are_never_given_back(new_bench: Callable[..., Bench], loras: list[LoraFile]) -> None:
    bench = new_bench()
    numbers = [bench.submit(PROMPT, 12, lora=lora) for lora in loras]
    ends = bench.wait(*numbers)
    assert [span(end).weights for end in ends] == [lora.weights for lora in loras]
    bench.wait(bench.submit(PROMPT, 1))
    assert bench.turns.loras <= KEPT


def test_a_request_cancelled_while_its_weights_come_never_starts(
    new_bench: Callable[..., Bench], loras: list[LoraFile]
) -> None:
    bench = new_bench()
    number = bench.submit(PROMPT, 8, lora=loras[0])
    bench.turns.cancel(number)
    bench.load(loras[0])
    bench.wait(bench.submit(PROMPT, 1, lora=loras[0]))
    assert number not in bench.sent


# -- background -----------------------------------------------------------------------------------------


def test_background_work_waits_until_people_are_served_and_then_goes_on(new_bench: Callable[..., Bench]) -> None:
    quiet = new_bench(background=2)
    quiet.wait(number := quiet.submit(PROMPT, 30, background=True))
    expected = quiet.text(number)
    bench = new_bench(background=2)
    behind = bench.submit(PROMPT, 30, background=True)
    bench.until(lambda: len(bench.sent.get(behind, ())) > 4)
    person = bench.submit("Once upon a time", 20)
    bench.wait(person, behind)
    first, last = bench.order.index(person), len(bench.order) - 1 - bench.order[::-1].index(person)
    assert behind not in bench.order[first:last]
    assert bench.text(behind) == expected


def test_background_work_under_one_set_of_weights_gives_way_to_people_under_another(
    new_bench: Callable[..., Bench], loras: list[LoraFile]
) -> None:
    bench = new_bench(background=2)
    bench.load(loras[0])
    behind = bench.submit(PROMPT, 60, lora=loras[0], background=True)
    bench.until(lambda: len(bench.sent.get(behind, ())) > 4)
    person = bench.submit("Once upon a time", 20)
    bench.wait(person, behind)
    first, last = bench.order.index(person), len(bench.order) - 1 - bench.order[::-1].index(person)
    assert behind not in bench.order[first:last]


def test_background_work_ends_some_day_although_people_never_stop(
    new_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.02)
    bench = new_bench(background=2)
    person = bench.submit("Once upon a time", 40)
    behind = bench.submit(PROMPT, 8, background=True)
    for _ in range(99):
        following = bench.submit("Once upon a time", 40)  # before the one before it ends
        bench.wait(person)
        person = following
        if bench.done(behind):
            break
    assert bench.done(behind)
    bench.wait(person)


@pytest.mark.parametrize("moment", [0.0, 1e9])
def test_background_work_gets_a_moment_and_not_only_a_step(
    new_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, moment: float
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(turns, "_MOMENT_SECONDS", moment)
    bench = new_bench(background=1)
    person = bench.submit("Once upon a time", 100)
    bench.until(lambda: person in bench.sent)
    behind = bench.submit(PROMPT, 12, background=True)
    bench.wait(behind, person)
    runs = "".join(".b"[number == behind] for number in bench.order).split(".")
    assert (max(map(len, runs)) >= 12) is (moment > 0)


def test_a_rest_before_background_work_is_no_waiting(
    new_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 1.0)
    bench = new_bench(background=1)
    bench.wait(bench.submit("Hi", 1, background=True))
    time.sleep(1.2)
    owed: list[bool] = []
    step = bench.turns._base.step

    def noted(*, background: bool, shared: bool) -> scheduler.Batch:
        owed.append(bench.turns._owed)
        return step(background=background, shared=shared)

    monkeypatch.setattr(bench.turns._base, "step", noted)
    bench.wait(bench.submit("Ho", 1, background=True))
    assert owed
    assert not any(owed)


def test_background_work_ends_some_day_although_each_of_its_steps_is_ended_by_a_person(
    new_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.5)  # some dozens of the turns below
    bench = new_bench(limit=300, background=1)
    behind = bench.submit(" ".join(f"{n} apples" for n in range(60)), 1, background=True)
    for _ in range(2000):
        time.sleep(0.003)  # its step has begun
        bench.wait(bench.submit("Hi", 1))
        if bench.done(behind):
            break
    assert bench.done(behind)


def test_people_find_a_slot_however_much_waits_in_the_background(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(parallel=1, background=2)
    behind = [bench.submit(f"{n} {PROMPT}", 12, background=True) for n in range(8)]
    bench.until(lambda: any(number in bench.sent for number in behind))
    bench.wait(person := bench.submit("Once upon a time", 4))
    assert not all(bench.done(number) for number in behind)
    assert bench.started(person).prompt_tokens > 0
    bench.wait(*behind)


def test_background_work_that_loses_its_memory_reads_again(new_bench: Callable[..., Bench]) -> None:
    def said(bench: Bench, *, crowd: bool) -> str:
        number = bench.submit(" ".join(f"{n} apples" for n in range(20)), 20, background=True)
        bench.until(lambda: len(bench.sent.get(number, ())) > 2)
        if crowd:  # two people fill the memory of 240
            bench.wait(*(bench.submit(" ".join(f"{n + k} pears" for n in range(21)), 8) for k in (100, 300)))
        bench.wait(number)
        return bench.text(number)

    quiet, crowded = new_bench(background=1), new_bench(background=1)
    assert said(quiet, crowd=False)[:20] == said(crowded, crowd=True)[:20]


def test_a_person_ends_a_background_prompt_that_is_being_read(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(limit=300, background=1)
    behind = bench.submit(" ".join(f"{n} apples" for n in range(60)), 1, background=True)
    bench.until(lambda: behind in bench.sent)
    bench.wait(person := bench.submit("Hi", 1))
    assert not bench.done(behind)
    bench.wait(behind)
    assert bench.order.index(person) < len(bench.order) - 1


def test_cancelled_background_work_is_gone_while_it_waits(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench(background=1)
    behind = bench.submit(PROMPT, 60, background=True)
    bench.until(lambda: len(bench.sent.get(behind, ())) > 2)
    person = bench.submit("Once upon a time", 10)
    bench.turns.cancel(behind)
    bench.wait(person)
    bench.wait(bench.submit(PROMPT, 1, background=True))
    assert not bench.done(behind)
