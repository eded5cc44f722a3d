"""The face: opening and closing, records and their lists, what is told after a commit."""

import sqlite3
import threading
from pathlib import Path

import pytest

from daemon.core.errors import NotFound, StoreError, UsageError
from daemon.core.records import Appended, Dialect, End, Kind, TokenSpan, Usage
from daemon.store.db import Store
from tests.fakes.exchanges import STARTED_NS, Conversation, record, submit, system, transcript, user

COVERS = ("daemon/store/records.py",)


def test_a_row_says_what_happened(store: Store) -> None:
    made = transcript(
        [system("s"), user("q")], "the answer", usage=Usage(prompt=9, completion=4, cached=3), redacted=2,
    )  # fmt: skip
    appended = record(
        store, made, dialect=Dialect.MESSAGES, stream=True, agent="pi", weights="sha", first_byte_us=None, scenario="s1"
    )
    row = store.record(appended.receipt)
    assert (row.seq, row.receipt, row.session, row.kind) == (1, appended.receipt, appended.session, Kind.MAIN)
    assert (row.scenario, row.dialect, row.end, row.status, row.stream) == ("s1", Dialect.MESSAGES, End.OK, 200, True)
    assert (row.started_ns, row.duration_us, row.first_byte_us) == (STARTED_NS, 1000, None)
    assert (row.engine, row.model_asked, row.model, row.release_id) == ("embedded", "m", "m-1", "default@0")
    assert (row.weights, row.agent, row.stop_reason, row.error) == ("sha", "pi", "stop", None)
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens) == (9, 3, 4)
    assert (row.preview, row.messages, row.redacted, row.parent) == ("the answer", 2, 2, None)


def test_a_preview_says_what_went_wrong_else_what_was_asked(store: Store) -> None:
    failed = record(store, transcript([user("q")], None), end=End.ERROR, error="upstream\nsaid no")
    silent = record(store, transcript([user("q two")], None), end=End.CANCELLED)
    assert store.record(failed.receipt).preview == "upstream said no"
    assert store.record(silent.receipt).preview == "q two"


def test_records_page_by_page_newest_first(store: Store) -> None:
    talk = Conversation(store)
    receipts = [talk.turn(f"q{n}").receipt for n in range(7)]
    first, cursor = store.records(limit=3)
    second, cursor = store.records(limit=3, before=cursor)
    third, end = store.records(limit=3, before=cursor)
    assert [row.receipt for row in [*first, *second, *third]] == receipts[::-1]
    assert end is None


def test_records_after_a_seq_oldest_first(store: Store) -> None:
    talk = Conversation(store)
    receipts = [talk.turn(f"q{n}").receipt for n in range(5)]
    rows, cursor = store.records(after="2", limit=2)
    assert [row.receipt for row in rows] == receipts[2:4]
    assert [row.receipt for row in store.records(after=cursor)[0]] == receipts[4:]
    assert store.records(after="5") == ([], None)


def test_records_of_one_session(store: Store) -> None:
    one, two = Conversation(store), Conversation(store, said=[system("other")])
    first = one.turn("q")
    two.turn("q")
    second = one.turn("q2")
    rows, _ = store.records(session=first.session)
    assert [row.receipt for row in rows] == [second.receipt, first.receipt]
    assert store.records(session="ses_nobody") == ([], None)


def test_before_and_after_exclude_each_other(store: Store) -> None:
    with pytest.raises(UsageError, match="exclude"):
        store.records(before="1", after="1")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_row(store: Store, limit: int) -> None:
    with pytest.raises(UsageError, match="limit"):
        store.records(limit=limit)


def test_the_last_answer_is_the_last_sessions(store: Store) -> None:
    assert store.last() is None
    first = Conversation(store).turn("q")
    second = record(store, transcript([user("other")]), scenario="other")
    assert [row.receipt for row in (store.last(), store.last("default")) if row] == [second.receipt, first.receipt]
    assert store.last("nobody") is None


def test_a_session_without_an_answer_has_no_last_one(store: Store) -> None:
    """Feedback must not fall on an older session because the newest one failed."""
    Conversation(store).turn("q")
    record(store, transcript([system("new"), user("fails")], None), end=End.ERROR)
    assert store.last() is None


def test_counts(store: Store) -> None:
    assert store.counts() == {"records": 0, "sessions": 0, "reports": 0}
    talk = Conversation(store)
    talk.turn("a")
    talk.turn("b")
    assert store.counts() == {"records": 2, "sessions": 1, "reports": 0}


def test_commits_are_told_in_order(store: Store) -> None:
    told: list[Appended] = []
    everything = threading.Event()

    def hear(appended: list[Appended]) -> None:
        told.extend(appended)
        if len(told) == 20:
            everything.set()

    store.on_commit = hear
    made = [transcript([user(f"q{n}")]) for n in range(20)]
    futures = [submit(store, one) for one in made]
    assert everything.wait(10)
    assert told == [future.result(10) for future in futures]
    assert [item.seq for item in told] == list(range(1, 21))


def test_a_listener_that_fails_breaks_nothing(store: Store) -> None:
    store.on_commit = lambda appended: 1 / 0  # type: ignore[assignment]
    assert record(store, transcript([user("a")])).seq == 1
    assert record(store, transcript([user("b")])).seq == 2


def test_files_are_for_their_owner_only(store: Store, path: Path) -> None:
    record(store, transcript([user("a")]))
    assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {
        "reef.db": 0o600, "reef.db-wal": 0o600, "reef.db-shm": 0o600,
    }  # fmt: skip
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_closing_writes_what_waits(path: Path) -> None:
    store = Store.open(path)
    made = [transcript([user(f"q{n}")]) for n in range(50)]
    futures = [submit(store, one) for one in made]
    store.close()
    assert all(future.done() for future in futures)
    again = Store.open(path)
    assert again.counts()["records"] == 50
    assert again.verify() == []
    again.close()


def test_a_closed_store_says_so(path: Path) -> None:
    store = Store.open(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        record(store, transcript([user("late")]))
    with pytest.raises(StoreError, match="closed"):
        store.counts()


def test_another_process_may_read_meanwhile(store: Store, path: Path) -> None:
    record(store, transcript([user("a")]))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM record").fetchone() == (1,)
    assert record(store, transcript([user("b")])).seq == 2
    reader.close()


def test_many_threads_read_and_write_at_once(store: Store) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            talk = Conversation(store, said=[system(f"thread {name}")])
            for turn in range(10):
                receipt = talk.turn(f"{name}/{turn}").receipt
                assert store.messages(receipt)[-1].text == f"{name}/{turn}"
                store.sessions(limit=5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert sorted(row.turns for row in store.sessions()[0]) == [10] * 8
    assert store.verify() == []


def test_a_path_that_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open"):
        Store.open(tmp_path)


def test_a_span_is_optional(store: Store) -> None:
    span = TokenSpan((1, 2, 3), (4, 5), (-0.5, -1.5), "sha")
    with_span = record(store, transcript([user("a")]), span=span)
    without = record(store, transcript([user("b")]))
    assert store.span(with_span.receipt) == span
    assert store.span(without.receipt) is None


def test_an_unknown_receipt_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="rec_nobody"):
        store.record("rec_nobody")
