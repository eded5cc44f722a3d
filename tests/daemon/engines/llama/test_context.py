from collections.abc import Iterator

import numpy as np
import pytest

from daemon.engines.llama.context import Context, Outcome, Share
from daemon.engines.llama.model import Model
from daemon.engines.llama.slots import Slot

pytestmark = pytest.mark.engine

TEXT = b"The quick brown fox jumps over the lazy dog and runs through the green forest to the"


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    context = Context(model, limit=128, parallel=3, threads=1)
    yield context
    context.close()


def read(
    context: Context, slot: Slot, text: bytes = TEXT, pieces: int = 1
) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """Read a text into a slot, from where it is, in so many batches; returns what comes next."""
    slot.tokens = context.model.vocab.tokenize(text)
    size = -(-slot.unread // pieces)
    while slot.unread:
        code, [row] = context.decode([Share(slot, min(size, slot.unread))])
        assert code == Outcome.DONE
        slot.read += min(size, slot.unread)
    return np.array(context.logits(row))


def same(
    first: "np.ndarray[tuple[int], np.dtype[np.float32]]", second: "np.ndarray[tuple[int], np.dtype[np.float32]]"
) -> bool:
    """Equal but for the order in which floating-point numbers were added up."""
    return float(np.corrcoef(first, second)[0, 1]) > 0.9999 and first.argmax() == second.argmax()


def test_reading_in_pieces_gives_what_reading_at_once_gives(context: Context) -> None:
    first, second, _ = context.slots
    assert same(read(context, first), read(context, second, pieces=5))


def test_slots_do_not_see_each_other(context: Context) -> None:
    first, second, _ = context.slots
    alone = read(context, first)
    read(context, second, b"<|im_start|>user\nSomething else entirely")
    context.clear(first)
    assert same(read(context, first), alone)


def test_a_cut_conversation_goes_on_as_if_the_rest_had_never_been(context: Context) -> None:
    first, second, _ = context.slots
    alone = read(context, first)
    read(context, second, TEXT.replace(b"lazy", b"purple") + b" very end of the world")
    context.cut(second, 7)
    assert second.read == 7
    assert same(read(context, second), alone)


def test_a_shared_beginning_needs_no_reading(context: Context) -> None:
    first, second, third = context.slots
    alone = read(context, first)
    context.share(first, second, 8)
    assert second.read == 8
    assert same(read(context, second), alone)
    context.clear(first)  # the beginning is the second's too, and stays
    context.share(second, third, 8)
    assert same(read(context, third), alone)


def test_slots_can_be_read_in_one_batch(context: Context) -> None:
    first, second, _ = context.slots
    alone = read(context, first)
    context.clear(first)
    for slot in (first, second):
        slot.tokens = context.model.vocab.tokenize(TEXT)
    code, rows = context.decode([Share(first, first.unread), Share(second, second.unread)])
    assert code == Outcome.DONE
    assert all(same(np.array(context.logits(row)), alone) for row in rows)


def test_an_abort_ends_a_batch_and_leaves_a_usable_context(context: Context) -> None:
    first, second, _ = context.slots
    alone = read(context, first)
    second.tokens = context.model.vocab.tokenize(TEXT * 2)
    context.abort = True
    code, _ = context.decode([Share(second, len(second.tokens))])
    assert code == Outcome.ABORTED
    context.cut(second, 0)
    context.abort = False
    assert same(read(context, second), alone)


def test_a_step_that_only_decodes_is_too_short_to_abort(context: Context) -> None:
    context.abort = True
    slot = context.slots[0]
    slot.tokens = [1]
    assert context.decode([Share(slot, 1)])[0] == Outcome.DONE


def test_a_full_memory_is_told_and_changes_nothing(context: Context) -> None:
    first, second, third = context.slots
    alone = read(context, first)
    second.tokens = [500] * 128
    code, _ = context.decode([Share(second, 128)])
    assert code == Outcome.DONE
    second.read = 128
    third.tokens = [600] * 200
    code, _ = context.decode([Share(third, 200)])
    assert code == Outcome.FULL
    context.cut(third, 0)
    context.clear(first)
    assert same(read(context, first), alone)


def test_the_probe_leaves_nothing_behind_and_is_the_same_each_time(context: Context) -> None:
    first, second = context.probe(), context.probe()
    assert np.array_equal(first, second)
    assert len(first) == 15
    assert (first < 0).all()
    assert (context.slots[0].read, context.slots[0].tokens) == (0, [])
    assert context.weights == context.model.digest
