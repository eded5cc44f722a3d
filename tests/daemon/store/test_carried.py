"""A wrapped run's request is counted for the release whose rules it carries."""

from typing import Any

import pytest

from daemon.core.harness import mark
from daemon.core.records import Exchange, StoredMessage
from daemon.store.carried import attributed
from daemon.store.db import Store
from tests.fakes.exchanges import assistant, exchange, submit, system, tool, transcript, user

OLD, NEW = "r1-0123abcd", "r2-89abcdef"
GIVEN = {"release": NEW, "rules": "told", "run": "run_1"}


def counted(messages: list[StoredMessage], tags: dict[str, str] = GIVEN, **changes: Any) -> Exchange:
    named = {"subagent", "side"} & changes.keys()
    of_exchange = {name: changes.pop(name) for name in named}
    made = transcript(messages, **changes)
    return attributed(exchange(made, release_id=NEW, tags=tags, **of_exchange), made)


@pytest.mark.parametrize(
    ("messages", "changes"),
    [
        ([system(f"Rules. {mark(OLD)}"), user("hi")], {}),
        ([user(f"AGENTS.md: {mark(OLD)}"), user("hi"), assistant("ok"), user("more")], {}),
        ([user("hi")], {"tail": f'],"system":"Rules. {mark(OLD)}"}}'.encode()}),
        ([user(mark(NEW))], {"head": f'{{"system":"{mark(OLD)}","messages":['.encode()}),
        ([user(mark(OLD)), assistant(mark(NEW)), tool(mark(NEW))], {}),
    ],
)
def test_a_conversation_that_kept_its_first_rules_is_counted_for_them(
    messages: list[StoredMessage], changes: dict[str, Any]
) -> None:
    found = counted(messages, **changes)
    assert (found.release_id, found.tags) == (OLD, {**GIVEN, "release": OLD})


def test_of_two_in_a_conversation_the_one_said_last_counts() -> None:
    assert counted([user(mark(OLD)), assistant("ok"), user(mark(NEW))]).release_id == NEW


def test_a_turn_without_the_rules_that_its_run_was_given_began_before_there_were_any() -> None:
    assert counted([user("hi")]).release_id == "base"


@pytest.mark.parametrize("changes", [{"tools": 0}, {"side": True}, {"subagent": "a1"}])
def test_what_is_beside_the_conversation_is_counted_for_its_run(changes: dict[str, Any]) -> None:
    assert counted([user("hi")], {**GIVEN, "release": OLD}, **changes).release_id == OLD


def test_a_release_without_rules_is_known_by_its_run() -> None:
    assert counted([user("hi")], {"release": OLD}).release_id == OLD
    assert counted([user("hi")], {"release": "base"}).release_id == "base"


@pytest.mark.parametrize("tags", [{}, {"release": "1.2"}, {"release": "r1-0123abcd "}])
def test_where_no_wrapper_says_what_it_gave_what_served_counts(tags: dict[str, str]) -> None:
    found = counted([system(mark(OLD)), user("hi")], tags)
    assert (found.release_id, found.tags) == (NEW, tags)


def test_the_store_tells_what_it_counted(store: Store) -> None:
    made = transcript([user(mark(OLD)), user("hi")])
    assert submit(store, made, release_id=NEW, tags=GIVEN).result().release_id == OLD
