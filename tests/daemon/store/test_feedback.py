"""Reports with the published semantics, and taking one back."""

import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Conflict, NotFound, UnknownReference, UsageError
from daemon.core.records import End
from daemon.core.rows import NewReport, ReportRow
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, record, system, transcript, user


def send(store: Store, id: str = "rep_1", **changes: Any) -> tuple[ReportRow, bool]:
    return store.report(NewReport(**{"id": id, "scenario": "default", **changes})).result(20)


@pytest.fixture
def receipts(store: Store) -> list[str]:
    talk = Conversation(store)
    return [talk.turn(f"q{n}").receipt for n in range(3)]


def test_a_report_names_receipts(store: Store, receipts: list[str]) -> None:
    row, created = send(store, score=0.5, feedback="wrong", references=(receipts[1],), metadata={"by": ["me", 1]})
    assert created
    assert (row.id, row.score, row.feedback, row.references) == ("rep_1", 0.5, "wrong", (receipts[1],))
    assert (row.metadata, row.undone_ns) == ({"by": ["me", 1]}, None)
    assert store.reports_on(receipts) == {receipts[1]: [row]}
    assert store.counts()["reports"] == 1


def test_references_keep_their_order(store: Store, receipts: list[str]) -> None:
    wanted = (receipts[2], receipts[0])
    assert send(store, score=1.0, references=wanted)[0].references == wanted


def test_the_same_report_again_changes_nothing(store: Store, receipts: list[str]) -> None:
    first, _ = send(store, score=1.0, references=(receipts[0],))
    assert send(store, score=1.0, references=(receipts[0],)) == (first, False)
    assert store.counts()["reports"] == 1


@pytest.mark.parametrize("other", [{"score": 0.0}, {"feedback": "x"}, {"metadata": {"a": 1}}, {"references": ()}])
def test_the_same_id_with_other_content_is_a_conflict(store: Store, receipts: list[str], other: dict[str, Any]) -> None:
    said: dict[str, Any] = {"score": 1.0, "references": (receipts[0],)}
    send(store, **said)
    with pytest.raises(Conflict, match="rep_1"):
        send(store, **{**said, **other})


def test_a_records_id_is_no_id_for_a_report(store: Store, receipts: list[str]) -> None:
    with pytest.raises(Conflict, match=receipts[0]):
        send(store, receipts[0], score=1.0)


def test_the_same_id_may_serve_in_another_scenario(store: Store, receipts: list[str]) -> None:
    record(store, transcript([user("hi")]), scenario="other")
    send(store, score=1.0)
    assert send(store, score=0.0, scenario="other")[1]


def test_an_unknown_reference_is_named(store: Store, receipts: list[str]) -> None:
    with pytest.raises(UnknownReference, match="rec_nobody") as caught:
        send(store, score=1.0, references=(receipts[0], "rec_nobody"))
    assert caught.value.status == 400
    assert store.counts()["reports"] == 0


def test_another_scenarios_receipt_is_unknown(store: Store, receipts: list[str]) -> None:
    other = record(store, transcript([user("hi")]), scenario="other")
    with pytest.raises(UnknownReference, match=other.receipt):
        send(store, score=1.0, references=(other.receipt,))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"score": math.nan}, "finite"),
        ({"score": math.inf}, "finite"),
        ({"score": 1.0, "references": ("a", "b", "a")}, "'a' is named twice"),
        ({"score": 1.0, "references": tuple(map(str, range(1001)))}, "1001 references"),
        ({}, "says nothing"),
        ({"feedback": ""}, "says nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(store: Store, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        send(store, **changes)


def test_no_references_mean_the_last_session(store: Store, receipts: list[str]) -> None:
    talk = Conversation(store, said=[system("another")])
    last = [talk.turn(f"other {n}").receipt for n in range(2)]
    assert send(store, score=1.0)[0].references == tuple(last)


def test_side_calls_and_failures_are_not_what_a_report_means(store: Store) -> None:
    key = {"session_keys": ("k",)}
    main = record(store, transcript([system("s"), user("work")]), **key)
    record(store, transcript([system("t"), user("title")], tools=0), **key)
    record(store, transcript([system("s"), user("fails")], None), end=End.ERROR, **key)
    assert send(store, score=1.0)[0].references == (main.receipt,)


def test_a_retry_that_was_answered_is_what_a_report_means(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("q", end=End.ERROR)
    answered = talk.turn("q", "a")
    assert send(store, score=1.0)[0].references == (answered.receipt,)


def test_nothing_recorded_is_nothing_to_report_on(store: Store) -> None:
    with pytest.raises(UnknownReference, match="no answer"):
        send(store, score=1.0)


def test_repeating_a_report_without_references_stays_idempotent(store: Store, receipts: list[str]) -> None:
    first, _ = send(store, score=1.0)
    record(store, transcript([user("a newer session")]))
    assert send(store, score=1.0) == (first, False)


def test_a_session_shows_its_last_score(store: Store, receipts: list[str]) -> None:
    send(store, "rep_1", score=0.0, references=(receipts[0],))
    send(store, "rep_2", score=1.0, references=(receipts[2],))
    send(store, "rep_3", feedback="only text", references=(receipts[2],))
    row = store.sessions()[0][0]
    assert (row.score, row.reports) == (1.0, 3)


def test_undo_takes_back_the_last_one_and_keeps_the_row(store: Store, receipts: list[str]) -> None:
    send(store, "rep_1", score=0.0)
    send(store, "rep_2", score=1.0)
    undone = store.undo(None, None).result(20)
    assert undone.id == "rep_2"
    assert undone.undone_ns is not None
    assert [row.id for row in store.reports_on(receipts)[receipts[0]]] == ["rep_1", "rep_2"]
    session = store.sessions()[0][0]
    assert (session.score, session.reports) == (0.0, 1)
    assert store.undo(None, None).result(20).id == "rep_1"
    assert store.sessions()[0][0].score is None
    with pytest.raises(NotFound):
        store.undo(None, None).result(20)


def test_undo_about_one_record_or_scenario(store: Store, receipts: list[str]) -> None:
    record(store, transcript([user("hi")]), scenario="other")
    send(store, "rep_1", score=0.0, references=(receipts[0],))
    send(store, "rep_2", score=1.0, references=(receipts[1],))
    send(store, "rep_3", score=1.0, scenario="other")
    assert store.undo(None, receipts[0]).result(20).id == "rep_1"
    assert store.undo("default", None).result(20).id == "rep_2"
    with pytest.raises(NotFound, match=receipts[2]):
        store.undo(None, receipts[2]).result(20)
    with pytest.raises(NotFound):
        store.undo("nobody", None).result(20)


def test_undo_of_one_report_leaves_the_later_ones(store: Store, receipts: list[str]) -> None:
    send(store, "rep_1", score=0.0, references=(receipts[0],))
    send(store, "rep_2", score=1.0, references=(receipts[0],))
    assert store.undo(None, None, "rep_1").result(20).id == "rep_1"
    assert [row.undone_ns is None for row in store.reports_on([receipts[0]])[receipts[0]]] == [False, True]
    with pytest.raises(NotFound, match="rep_1"):
        store.undo(None, None, "rep_1").result(20)


def test_a_report_is_never_rewritten(store: Store, path: Path, receipts: list[str]) -> None:
    """Not even by a program that opens the file itself."""
    send(store, score=1.0)
    db = sqlite3.connect(path, isolation_level=None)
    for change in ("score = 0", "feedback = 'x'", "created_ns = 0"):
        with pytest.raises(sqlite3.IntegrityError, match="final"):
            db.execute(f"UPDATE report SET {change}, undone_ns = 1")
    store.undo(None, None).result(20)
    with pytest.raises(sqlite3.IntegrityError, match="final"):
        db.execute("UPDATE report SET undone_ns = NULL")


def test_a_key_in_feedback_never_reaches_the_disk(store: Store, path: Path, receipts: list[str]) -> None:
    key = "sk-ant-api03-" + "Ab1" * 12
    row, _ = send(store, feedback=f"you printed {key}", metadata={"seen": key})
    assert key not in f"{row.feedback}{row.metadata}"
    assert not any(key.encode() in file.read_bytes() for file in path.parent.iterdir())
