"""Where a call will go is where it then goes."""

from typing import Any

import pytest

from daemon.core.records import End
from daemon.store.db import Store
from daemon.store.expected import Above
from tests.fakes.exchanges import Conversation, assistant, exchange, record, system, transcript, user


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


def above(store: Store, *messages: Any, tools: int = 1, previous: str | None = None, **changes: Any) -> Above:
    made = transcript(messages, None, tools=tools, previous=previous)
    return store.above(exchange(made, **changes), lambda: made)


def test_the_answer_above_is_the_one_that_a_conversation_goes_on_from(store: Store) -> None:
    talk = Conversation(store)
    first, early = talk.turn("one"), talk.said
    second = talk.turn("two")
    for said, receipt in ((talk.said, second.receipt), (early, first.receipt)):
        found = above(store, *said, user("reef-good"))
        assert found.turn
        assert found.answer is not None
        assert found.answer.receipt == receipt


def test_a_history_written_anew_is_known_by_its_id_and_has_its_sessions_last_answer(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    talk.turn("one")
    last = talk.turn("two")
    failed = talk.turn("three", end=End.ERROR, status=500)
    assert failed.session == last.session
    summary = user("Another language model started to solve this problem: all is well")
    for said in ([summary], [user("else"), assistant("?")]):
        found = above(store, *said, user("reef-good"), session_keys=("s1",))
        assert found.answer is not None
        assert found.answer.receipt == last.receipt


def test_what_only_begins_has_no_answer_above_it(store: Store) -> None:
    assert above(store, user("reef-good")) == (True, None)
    Conversation(store, changes={"session_keys": ("s1",)}).turn("one")
    assert above(store, user("reef-good"), session_keys=("s1",)) == (True, None), "a sub-agent's errand begins so"
    assert above(store, user("reef-good"), session_keys=("s2",)) == (True, None)


def test_a_side_call_and_a_subagents_are_no_turn(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    talk.turn("one")
    assert not above(store, user("title"), user("reef-good"), tools=0, session_keys=("s1",)).turn
    assert not above(store, *talk.said, user("reef-good"), session_keys=("s1",), subagent="a").turn
    assert not above(store, user("Generate a title for this conversation:"), user("reef-good"), scenario="new").turn


def test_the_answer_that_a_request_names_is_above_it(store: Store) -> None:
    made = transcript([user("one")], answer_id="resp_1")
    first = record(store, made)
    found = above(store, user("reef-good"), previous="resp_1")
    assert found.answer is not None
    assert found.answer.receipt == first.receipt
