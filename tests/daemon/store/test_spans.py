"""Token ids and log-probabilities, and what they cost."""

import random
import sqlite3
import struct
from pathlib import Path

from daemon.core.records import TokenSpan
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation


def f32(value: float) -> float:
    packed: float = struct.unpack("f", struct.pack("f", value))[0]
    return packed


def span(prompt: tuple[int, ...], completion: tuple[int, ...], weights: str = "sha") -> TokenSpan:
    return TokenSpan(prompt, completion, tuple(f32(-0.1 * n) for n in range(len(completion))), weights)


def grown(turns: int, *, drift: bool = False) -> list[TokenSpan]:
    """A conversation in tokens; with ``drift`` the template writes the last answer's end anew each turn."""
    noise, spans = random.Random(3), []
    context: tuple[int, ...] = tuple(noise.randrange(50_000) for _ in range(300))
    for _ in range(turns):
        completion = tuple(noise.randrange(50_000) for _ in range(40))
        spans.append(span(context, completion))
        kept = context + completion
        context = (kept[:-1] if drift else kept) + tuple(noise.randrange(50_000) for _ in range(200))
    return spans


def test_a_conversation_comes_back_at_every_turn(store: Store) -> None:
    for drift in (False, True):
        talk, spans = Conversation(store), grown(50, drift=drift)
        receipts = [talk.turn(f"{drift}{n}", span=one).receipt for n, one in enumerate(spans)]
        assert [store.span(receipt) for receipt in receipts] == spans


def test_a_conversation_costs_its_length(store: Store, path: Path) -> None:
    talk = Conversation(store)
    for number, one in enumerate(grown(60)):
        talk.turn(f"q{number}", span=one)
    kept = sqlite3.connect(path).execute("SELECT sum(length(prompt) + length(completion)) FROM span").fetchone()[0]
    assert kept < 60 * 240 * 4  # every token once


def test_other_weights_and_no_shared_beginning(store: Store) -> None:
    talk = Conversation(store)
    spans = [span((1, 2, 3), (4,)), span((9, 8), (7, 6), "sha+adapter"), span((), ())]
    receipts = [talk.turn(f"q{n}", span=one).receipt for n, one in enumerate(spans)]
    assert [store.span(receipt) for receipt in receipts] == spans


def test_the_parents_span_is_read_where_it_is_not_at_hand(path: Path) -> None:
    one, two, three = grown(3)
    store = Store.open(path, durability="normal")
    talk = Conversation(store)
    talk.turn("q0", span=one)
    store.close()
    talk.store = Store.open(path, durability="normal")
    second = talk.turn("q1", span=two)
    said = list(talk.said)
    talk.turn("q2", span=three)
    talk.said = said
    fork = talk.turn("another q2", span=three)  # the parent's span went with its first continuation
    assert talk.store.span(second.receipt) == two
    assert talk.store.span(fork.receipt) == three
    talk.store.close()
