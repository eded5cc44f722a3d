import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import Sampling
from daemon.engines.llama.context import Context, Share
from daemon.engines.llama.model import Model
from daemon.engines.llama.sampling import Defaults, Sampler, log_probability

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def context(model: Model) -> Iterator[Context]:
    """A context that has read the beginning of a sentence; row 0 holds what comes next."""
    context = Context(model, limit=256, parallel=1, threads=1)
    slot = context.slots[0]
    slot.tokens = model.vocab.tokenize(b"The three primary colours are red, blue and")
    context.decode([Share(slot, len(slot.tokens))])
    yield context
    context.close()


def draw(context: Context, sampling: Sampling, grammar: str | None = None, times: int = 1) -> list[int]:
    """The first token, drawn ``times`` times from the same state."""
    row = context.slots[0].unread - 1
    sampler = Sampler(context.model.vocab, sampling, Defaults.of(context.model), grammar)
    tokens = [sampler.sample(context.handle, row, context.logits) for _ in range(times)]
    sampler.close()
    return tokens


def logits(context: Context) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    return context.logits(context.slots[0].unread - 1)


def test_temperature_zero_takes_the_likeliest(context: Context) -> None:
    assert draw(context, Sampling(temperature=0)) == [int(logits(context).argmax())]
    assert draw(context, Sampling(temperature=5.0, top_k=1)) == [int(logits(context).argmax())]


def test_a_seed_repeats_and_other_seeds_differ(context: Context) -> None:
    def run(seed: int) -> list[int]:
        return draw(context, Sampling(temperature=2.0, top_k=0, top_p=1.0, seed=seed), times=6)

    assert run(7) == run(7)
    assert len({tuple(run(seed)) for seed in range(5)}) > 1
    assert run(-1) == run(-1)
    assert run(2**40 + 3) == run(2**40 + 3)


def test_draws_follow_the_models_own_probabilities(context: Context) -> None:
    counted = Counter(draw(context, Sampling(temperature=1.0, top_k=0, top_p=1.0, seed=1), times=400))
    likeliest = int(logits(context).argmax())
    expected = math.exp(log_probability(logits(context), likeliest, 0)[0])
    assert counted[likeliest] / 400 == pytest.approx(expected, abs=0.1)


def test_what_is_left_open_keeps_to_the_likely_tokens(context: Context) -> None:
    allowed = set(np.argsort(logits(context))[-40:].tolist())
    assert set(draw(context, Sampling(seed=3), times=100)) <= allowed


def test_min_p_drops_what_is_far_less_likely_than_the_best(context: Context) -> None:
    drawn = set(draw(context, Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.5, seed=1), times=50))
    best = float(logits(context).max())
    assert all(float(logits(context)[token]) >= best + math.log(0.5) - 1e-3 for token in drawn)


def test_a_frequency_penalty_makes_a_repeated_token_unlikely(context: Context) -> None:
    tokens = draw(context, Sampling(temperature=0, frequency_penalty=2.0), times=12)
    assert len(set(tokens)) > 1
    assert len(set(draw(context, Sampling(temperature=0), times=12))) == 1


def test_log_probability_is_a_softmax_of_the_raw_logits(context: Context) -> None:
    row = logits(context).astype(np.float64)
    exact = row - row.max() - np.log(np.exp(row - row.max()).sum())
    token = int(exact.argsort()[-3])
    logprob, top = log_probability(logits(context), token, 4)
    assert logprob == pytest.approx(exact[token], abs=1e-4)
    assert [one for one, _ in top] == exact.argsort()[-4:][::-1].tolist()
    assert [p for _, p in top] == pytest.approx(np.sort(exact)[-4:][::-1].tolist(), abs=1e-4)
    assert log_probability(logits(context), token, 0)[1] == []


def test_a_grammar_allows_only_its_own_texts(context: Context) -> None:
    piece = context.model.vocab.piece
    for temperature in (0.0, 1.5):
        [token] = draw(context, Sampling(temperature=temperature, seed=1), grammar='root ::= "zebra" | "zoo"')
        assert piece(token).startswith(b"z")


def test_a_token_that_fits_anyway_is_not_changed_by_the_grammar(context: Context) -> None:
    free = draw(context, Sampling(temperature=0))
    assert draw(context, Sampling(temperature=0), grammar="root ::= [^z]*") == free


def test_a_grammar_that_llama_cpp_refuses_is_a_bad_request(context: Context) -> None:
    for broken in ("root ::= (", "root ::= missing", "root ::= root"):
        with pytest.raises(BadRequest):
            draw(context, Sampling(), grammar=broken)
