"""Records and reports from elsewhere: all of a batch or none, each once."""

import json
from threading import Event
from typing import Any

import pytest

from daemon.core.errors import Conflict, ReefError, UnknownReference, UsageError
from daemon.core.rows import NewReport
from daemon.store.db import Store
from daemon.store.imports import Line, NewRecord
from tests.fakes.exchanges import Conversation, assistant, exchange, record, submit, transcript, user


def line(id: str, text: str = "q", scenario: str = "default", **changes: Any) -> NewRecord:
    made = transcript([user(text)], f"answer to {text}", **changes)
    return NewRecord(json.dumps([text]).encode(), exchange(made, receipt=id, scenario=scenario), lambda: made)


def report(id: str, *references: str, score: float = 1.0, scenario: str = "default") -> NewReport:
    return NewReport(id, scenario, score=score, references=references)


def sent(store: Store, *lines: Line) -> list[str]:
    return [one.receipt for one in store.import_lines(lines).result(20)]


def test_a_batch_is_kept_with_reports_about_its_own_records(store: Store) -> None:
    assert sent(store, line("a"), report("r", "a"), line("b", "other")) == ["a", "b"]
    assert store.counts() == {"records": 2, "sessions": 2, "reports": 1}
    assert store.session(store.record("a").session).score == 1.0
    assert store.verify() == []


def test_what_is_sent_again_is_no_second_record(store: Store) -> None:
    lines = (line("a"), report("r", "a"))
    sent(store, *lines)
    assert sent(store, *lines, line("a")) == []
    assert store.counts()["records"] == 1


def test_a_batch_that_is_refused_takes_nothing_from_what_is_written_with_it(store: Store) -> None:
    gate = Event()
    store._transact(lambda _: gate.wait(20))  # all that comes meanwhile goes into one transaction
    before = submit(store, transcript([user("one")], "answer"))
    refused = store.import_lines((line("new"), line("new", "changed")))
    after = submit(store, transcript([user("two")], "answer"))
    gate.set()
    with pytest.raises(Conflict):
        refused.result(20)
    assert before.result(20).seq < after.result(20).seq
    assert store.counts() == {"records": 2, "sessions": 2, "reports": 0}
    assert sum(row.records for row in store.rollups("day", since_ns=0)) == 2


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ((line("new"), line("a", "changed")), Conflict),
        ((line("new"), line("new", "changed")), Conflict),
        ((line("new"), report("r", "new", score=0.0), report("r", "new")), Conflict),
        ((line("new"), report("r2", "missing")), UnknownReference),
        ((line("new"), report("r2")), UsageError),
        ((line("new"), report("r2", "new", score=float("nan"))), UsageError),
        ((line("new"), report("new", "a")), Conflict),
        ((line("new"), line("a", scenario="other")), Conflict),
        ((report("r2", "new"), line("new")), UnknownReference),
    ],
)
def test_one_line_that_does_not_fit_keeps_out_the_whole_batch(
    store: Store, lines: tuple[Line, ...], error: type[ReefError]
) -> None:
    sent(store, line("a"))
    with pytest.raises(error):
        sent(store, *lines)
    assert store.counts() == {"records": 1, "sessions": 1, "reports": 0}
    assert sent(store, line("new")) == ["new"]
    assert store.verify() == []


def test_what_was_seen_on_the_wire_gets_another_name_only(store: Store) -> None:
    """An agent's own transcript of calls that went through the daemon (ccusage/ccusage#1698)."""
    ours = record(store, transcript([user("q")], answer_id="msg_1"))
    assert sent(store, line("theirs", answer_id="msg_1"), report("r", "theirs")) == []
    assert store.counts()["records"] == 1
    (told,) = store.reports_on([ours.receipt])[ours.receipt]
    assert told.references == (ours.receipt,)


def test_a_file_that_names_no_answer_ids_brings_no_second_record_of_what_was_seen_on_the_wire(store: Store) -> None:
    talk = Conversation(store)
    turns = [talk.turn("q0", "a0"), talk.turn("q1", "a1")]
    (system_prompt, *_) = talk.said
    said = [system_prompt, user("q0")]
    made = transcript(said, "a0")
    lines = [NewRecord(b"1", exchange(made, receipt="file 1"), lambda: made)]
    again = transcript([*said, assistant("a0"), user("q1")], "a1")
    lines.append(NewRecord(b"2", exchange(again, receipt="file 2"), lambda: again))
    other = transcript([*said, assistant("a0"), user("q1")], "another answer")
    lines.append(NewRecord(b"3", exchange(other, receipt="file 3"), lambda: other))
    for _ in range(2):
        assert sent(store, *lines, report("r", "file 2")) in (["file 3"], [])
    assert store.counts()["records"] == 3
    assert list(store.reports_on([turns[1].receipt])) == [turns[1].receipt]
    assert store.verify() == []


def test_the_same_call_in_several_files_is_one_record(store: Store) -> None:
    """BUGS B149: An agent and its sub-agents each write it down, with the answer's id: ccusage/ccusage#1698."""
    assert sent(store, line("file 1: 7", answer_id="msg_1")) == ["file 1: 7"]
    assert sent(store, line("file 2: 3", answer_id="msg_1"), line("file 3: 1", answer_id="msg_1")) == []
    assert store.counts()["records"] == 1


def test_records_of_other_ids_that_say_the_same_are_others(store: Store) -> None:
    """Who gives ids says which are the same."""
    assert sent(store, line("a"), line("b")) == ["a", "b"]


def test_our_own_receipts_come_back_as_themselves(store: Store) -> None:
    ours = record(store, transcript([user("q")]))
    assert sent(store, line(ours.receipt)) == []
    assert store.counts()["records"] == 1


def test_a_turn_that_goes_on_from_an_imported_one_joins_it(store: Store) -> None:
    sent(store, line("a"))
    later = record(store, transcript([user("q"), assistant("answer to q"), user("more")]))
    assert later.session == store.record("a").session
