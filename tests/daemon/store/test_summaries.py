"""A conversation that begins with the summary of an older one, without any id."""

from typing import Any

import pytest

from daemon.core.records import Appended, End, Kind
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, assistant, record, system, transcript, user

ASKED = user("You are the component that summarizes a conversation when its context window is about to overflow. …")
GOAL = "create hello.txt as the person asked for it"
SNAPSHOT = (
    f"<state_snapshot>\n  <goal>{GOAL}</goal>\n  <known>tests run with uv run pytest -q</known>\n</state_snapshot>"
)
SUMMARY = f"<analysis>They asked for a file, and this thought is the longest line of all.</analysis>\n{SNAPSHOT}"


def summed(store: Store, **changes: Any) -> tuple[Conversation, Appended]:
    """A conversation of two turns, and the call that sums it up."""
    talk = Conversation(store, changes={"agent": "qwen-code"})
    for n in range(2):
        talk.turn(f"q{n}", f"a{n}")
    return talk, record(store, transcript([*talk.said, ASKED], SUMMARY), **{"agent": "qwen-code", **changes})


def begin(store: Store, text: str = SNAPSHOT, **changes: Any) -> Appended:
    said = [
        system("You help."),
        user(f"<system-reminder>skills</system-reminder>\n{text}\n\nResume the prior task using the summary above."),
        assistant("Got it. Thanks for the additional context!"),
        user("and now what"),
    ]
    return record(store, transcript(said), **{"agent": "qwen-code", **changes})


def test_it_goes_on_as_a_compaction(store: Store) -> None:
    """Qwen Code after /compress."""
    _, summing = summed(store)
    after = begin(store)
    row = store.record(after.receipt)
    assert (summing.kind, after.kind, after.session) == (Kind.SIDE, Kind.MAIN, summing.session)
    assert (row.edge, row.parent) == ("compaction", store.records(session=after.session)[0][2].receipt)
    assert (store.session(after.session).title, store.session(after.session).turns) == ("q0", 3)


def test_a_model_that_repeats_a_tag_holds_up_no_other_record(store: Store) -> None:
    """In the thread that writes, so that all of them would wait."""
    talk = record(store, transcript([user("q"), ASKED], "<thinking>" * 300_000), agent="qwen-code")
    assert talk.kind is Kind.SIDE


def test_it_is_taken_up_once(store: Store) -> None:
    _, summing = summed(store)
    assert begin(store).session == summing.session
    assert begin(store, f"again: {SNAPSHOT}").session != summing.session


@pytest.mark.parametrize(
    "changes",
    [
        {"text": f"- {GOAL}"},
        {"text": f"<goal>{GOAL}</goal>"},
        {"agent": "other"},
        {"scenario": "other"},
        {"session_keys": ("k",)},
    ],
)
def test_what_proves_too_little_begins_a_session(store: Store, changes: dict[str, Any]) -> None:
    """A piece alone; another agent, another scenario; an id of its own."""
    _, summing = summed(store)
    assert begin(store, **changes).session != summing.session


def test_a_conversation_that_went_on_without_its_summary_is_not_taken_up(store: Store) -> None:
    talk, summing = summed(store)
    talk.turn("never mind")
    assert begin(store).session != summing.session


def test_a_summary_that_did_not_come_is_none(store: Store) -> None:
    _, summing = summed(store, end=End.INCOMPLETE)
    assert begin(store).session != summing.session
