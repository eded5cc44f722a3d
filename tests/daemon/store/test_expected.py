"""Where a call will go is where it then goes."""

from typing import Any

import pytest

from daemon.core.records import End
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, exchange, record, system, transcript, user


def expected(store: Store, *messages: Any, **changes: Any) -> str | None:
    made = transcript(messages, None)
    return store.expected(exchange(made, **changes), lambda: made)


def test_a_conversation_that_goes_on_is_known_by_what_was_said(store: Store) -> None:
    one, two = Conversation(store), Conversation(store)
    first, second = one.turn("one"), two.turn("two")
    assert expected(store, *one.said, user("more")) == first.session
    assert expected(store, *two.said, user("more")) == second.session


def test_ids_count_before_what_was_said(store: Store) -> None:
    keyed = Conversation(store, changes={"session_keys": ("s1",)}).turn("q")
    assert expected(store, user("something else"), session_keys=("s1",)) == keyed.session
    assert expected(store, user("something else"), session_keys=("s2",)) is None


@pytest.mark.parametrize("changes", [{}, {"scenario": "other"}, {"scenario": "never-seen"}])
def test_what_begins_is_nowhere_yet(store: Store, changes: dict[str, str]) -> None:
    talk = Conversation(store)
    talk.turn("q")
    assert expected(store, system("You help."), user("another"), **changes) is None


def test_nothing_is_written_by_asking(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("q")
    before = store.counts(), store.sessions()
    for _ in range(2):
        expected(store, *talk.said, user("more"), scenario="new", agent="new")
    assert (store.counts(), store.sessions()) == before
    assert store.verify() == []


def test_a_call_that_is_tried_again_goes_where_the_first_went(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    failed = talk.turn("q", end=End.ERROR, status=500)
    assert expected(store, *talk.said, user("q"), session_keys=("s1",)) == failed.session
    assert record(store, transcript([*talk.said, user("q")]), session_keys=("s1",)).session == failed.session
