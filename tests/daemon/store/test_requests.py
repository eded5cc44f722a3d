"""Exact bytes come back, and only what is new costs space."""

import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.core.errors import NotFound
from daemon.core.records import StoredMessage
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, assistant, body, message, record, submit, system, transcript, user


def test_a_request_comes_back_byte_for_byte(store: Store) -> None:
    made = transcript([system("be brief"), user("grüße 🌊")], "hello")
    appended = record(store, made)
    assert store.request(appended.receipt) == body(made)
    assert store.response(appended.receipt) == made.response


def test_a_body_that_cannot_be_split_comes_back_whole(store: Store) -> None:
    made = transcript([], None, head=b'{"odd": [1, 2}', separator=b"", tail=b"")
    assert store.request(record(store, made).receipt) == b'{"odd": [1, 2}'
    assert store.verify() == []


def test_empty_bodies_come_back_empty(store: Store) -> None:
    appended = record(store, transcript([], None, head=b"", separator=b"", tail=b"", response=b""))
    assert store.request(appended.receipt) == b""
    assert store.response(appended.receipt) == b""


def test_another_separator_and_a_moving_frame_are_kept(store: Store) -> None:
    said = [system("s"), user("one")]
    receipts = []
    for turn in range(40):
        made = transcript(said, f"a{turn}", separator=b" ,\n", head=b'{"billing":"%d","messages":[' % turn)
        receipts.append((record(store, made).receipt, body(made)))
        said = [*said, assistant(f"a{turn}"), user(f"u{turn}")]
    assert all(store.request(receipt) == sent for receipt, sent in receipts)


def test_a_long_conversation_comes_back_at_every_turn(store: Store) -> None:
    """More turns than links are followed, so several whole lists lie between."""
    talk = Conversation(store)
    receipts = [talk.turn(f"question {n}", f"answer {n}").receipt for n in range(100)]
    for number, receipt in enumerate(receipts):
        assert [m.text for m in store.messages(receipt)] == [m.text for m in talk.said[: 2 + 2 * number]]
    assert store.verify() == []


def test_what_is_new_in_a_request(store: Store) -> None:
    talk = Conversation(store)
    first, second = talk.turn("one", "1"), talk.turn("two", "2")
    assert [m.text for m in store.new_messages(first.receipt)] == ["You help.", "one"]
    assert [m.text for m in store.new_messages(second.receipt)] == ["two"]
    answer = store.answer(second.receipt)
    assert answer is not None
    assert answer == assistant("2")


def test_no_answer_is_none(store: Store) -> None:
    assert store.answer(record(store, transcript([user("hi")], None)).receipt) is None


@pytest.mark.parametrize("read", ["record", "request", "response", "messages", "new_messages", "answer"])
def test_an_unknown_receipt_is_not_found(store: Store, read: str) -> None:
    with pytest.raises(NotFound, match="rec_nobody"):
        getattr(store, read)("rec_nobody")


def test_the_same_message_is_kept_once(store: Store, path: Path) -> None:
    for _ in range(5):
        record(store, transcript([system("a long system prompt"), user("hi")], "ok"))
    assert sqlite3.connect(path).execute("SELECT count(*) FROM message").fetchone() == (3,)


def test_a_message_that_only_looks_different_costs_next_to_nothing(store: Store, path: Path) -> None:
    """Anthropic's ``cache_control`` sits on the newest message and is gone in the next request."""
    text = random.Random(1).randbytes(3000).hex()
    receipts = [
        record(store, transcript([message("user", text, **extra)], None)).receipt
        for extra in ({"cache_control": {"type": "ephemeral"}}, {})
    ]
    sizes = [size for (size,) in sqlite3.connect(path).execute("SELECT length(body) FROM message ORDER BY id")]
    assert sizes[1] < 100 < sizes[0]
    assert [store.messages(receipt)[0].text for receipt in receipts] == [text, text]


def test_a_session_costs_its_length_not_its_square(store: Store, path: Path) -> None:
    noise, sent = random.Random(2), 0
    talk = Conversation(store)
    for _ in range(60):
        talk.turn(noise.randbytes(500).hex(), noise.randbytes(100).hex())
        sent += sum(len(m.raw) for m in talk.said)
    kept = sqlite3.connect(path).execute("SELECT sum(length(body)) FROM message").fetchone()[0]
    assert kept * 20 < sent


def test_a_rewritten_history_shares_what_it_can(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("k",)})
    for number in range(5):
        talk.turn(f"q{number}")
    talk.said = [talk.said[0], user("summary of what was before")]
    compacted = talk.turn("go on")
    assert [m.text for m in store.new_messages(compacted.receipt)] == ["summary of what was before", "go on"]
    assert store.verify() == []


def test_text_that_is_not_unicode_survives(store: Store) -> None:
    odd = StoredMessage(b'{"content":"\\ud800"}', bytes(16), "user", "\ud800")
    appended = record(store, transcript([odd], None))
    assert store.messages(appended.receipt) == [odd]


_TEXTS = st.lists(st.text(max_size=60), min_size=1, max_size=6)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(_TEXTS, min_size=1, max_size=8), cut=st.integers(0, 5))
def test_whatever_an_agent_sends_comes_back(store: Store, turns: list[list[str]], cut: int) -> None:
    """Histories that grow, shrink and change at random: every one is rebuilt exactly, and the store stays sound."""
    said: list[StoredMessage] = []
    stored = []
    for texts in turns:
        said = [*said[: max(0, len(said) - cut)], *(user(text) for text in texts)]
        made = transcript(said, texts[0])
        stored.append((submit(store, made), body(made)))
    for future, sent in stored:
        assert store.request(future.result(20).receipt) == sent
    assert store.verify() == []
