"""Sums that are counted with each record, and the records of a span of time, whatever the clock did."""

import sqlite3
from pathlib import Path

import pytest

from daemon.core.privacy import Purge
from daemon.core.records import End, Usage
from daemon.core.rows import RollupRow
from daemon.store import rollups
from daemon.store.db import Store
from tests.daemon.store.older import downgraded
from tests.fakes.exchanges import STARTED_NS, Conversation, record, transcript, user

HOUR = 3_600_000_000_000


def all_rows(store: Store, unit: rollups.Unit = "hour", *by: str) -> list[RollupRow]:
    return store.rollups(unit, since_ns=0, by=by)


def test_every_record_is_counted_in_its_hour_and_its_day(store: Store) -> None:
    talk = Conversation(store, changes={"agent": "pi"})
    talk.turn("q", "a", started_ns=STARTED_NS)
    talk.turn("q2", "a2", started_ns=STARTED_NS + HOUR)
    talk.turn("q3", end=End.ERROR, status=500, started_ns=STARTED_NS + HOUR)
    talk.turn("q3", "a3", started_ns=STARTED_NS + HOUR)
    hours, days = all_rows(store), all_rows(store, "day")
    assert [(row.records, row.turns, row.failed, row.retries) for row in hours] == [(3, 2, 1, 1), (1, 1, 0, 0)]
    assert [row.start_ns % HOUR for row in hours] == [0, 0]
    assert sum(row.records for row in days) == 4
    assert sum(row.prompt_tokens for row in days) == sum(row.prompt_tokens for row in hours) > 0


@pytest.mark.parametrize("receipts", [False, True])
def test_what_is_purged_leaves_the_sums(store: Store, receipts: bool) -> None:
    """Also retries, failures and turns; a scenario of which nothing is left is named nowhere."""
    stays = Conversation(store, changes={"agent": "pi"})
    stays.turn("q", "a")
    before = {unit: all_rows(store, unit, "scenario", "agent", "model") for unit in ("hour", "day")}
    gone = Conversation(store, changes={"agent": "pi"})
    made = [
        gone.turn("p", "b"),
        gone.turn("p2", end=End.ERROR, status=500),
        gone.turn("p2", "b2"),
        gone.turn("p3", "b3", started_ns=STARTED_NS + HOUR),
    ]
    made += [record(store, transcript([user("x")]), scenario="client", model_asked="other")]
    assert all_rows(store, "day", "scenario")[0].records + all_rows(store, "day", "scenario")[1].records == 6
    named = {(one.receipt,) if receipts else (one.session,) for one in made}
    for one in sorted(named):
        store.purges.run(Purge(receipts=one) if receipts else Purge(sessions=one), lambda *_: None)
    assert {unit: all_rows(store, unit, "scenario", "agent", "model") for unit in ("hour", "day")} == before
    assert store.verify() == []


def test_a_retry_may_outlive_what_it_repeats(store: Store) -> None:
    talk = Conversation(store)
    first, again = talk.turn("q", end=End.ERROR, status=500), talk.turn("q", "a")
    store.purges.run(Purge(receipts=(first.receipt,)), lambda *_: None)
    assert [row.records for row in store.sessions()[0]] == [1]
    assert store.verify() == []
    store.purges.run(Purge(receipts=(again.receipt,)), lambda *_: None)
    assert (store.counts()["sessions"], store.verify()) == (0, [])


def test_what_goes_by_its_age_stays_in_the_sums(store: Store) -> None:
    one = Conversation(store).turn("q", "a")
    before = all_rows(store)
    store.purges.run(Purge(sessions=(one.session,), sums=False), lambda *_: None)
    assert (store.counts()["records"], all_rows(store)) == (0, before)
    assert store.verify() == []


def test_sums_are_split_by_what_is_asked(store: Store) -> None:
    record(store, transcript([user("a")]), agent="pi", model_asked="small", scenario="one")
    record(store, transcript([user("b")], usage=Usage(7, 3)), agent=None, model_asked="large", scenario="two")
    assert {row.model: row.records for row in all_rows(store, "day", "model")} == {"small": 1, "large": 1}
    assert {row.agent for row in all_rows(store, "day", "agent")} == {"pi", None}
    (two,) = store.rollups("day", since_ns=0, scenario="two")
    assert (two.records, two.prompt_tokens, two.completion_tokens) == (1, 7, 3)
    assert store.rollups("day", since_ns=0, scenario="' OR 1=1--") == []


def test_what_was_paid_is_summed_where_it_is_known(store: Store) -> None:
    for number, cost in enumerate((0.25, 0.5, None)):
        record(store, transcript([user(f"q{number}")], usage=Usage(1, 1, cost=cost)), model_asked="large")
    record(store, transcript([user("free?")]), model_asked="small")
    costs = {row.model: row.cost_usd for row in all_rows(store, "day", "model")}
    assert costs == {"large": 0.75, "small": None}
    assert all_rows(store)[0].cost_usd == 0.75
    paid = next(row for row in store.records()[0] if row.cost_usd == 0.5)
    store.purges.run(Purge(receipts=(paid.receipt,)), lambda *_: None)
    assert all_rows(store)[0].cost_usd == 0.25


def test_a_clock_that_goes_back_loses_no_record_of_a_span(store: Store, path: Path) -> None:
    """Order is by seq; a span of time still finds all that began in it, and durations are never negative."""
    starts = [STARTED_NS, STARTED_NS + HOUR, STARTED_NS - HOUR, STARTED_NS + 2 * HOUR]
    talk = Conversation(store)
    receipts = [talk.turn(f"q{n}", started_ns=at, duration_us=-5) for n, at in enumerate(starts)]
    assert len({one.session for one in receipts}) == 1
    assert [row.seq for row in store.records()[0]] == [4, 3, 2, 1]
    assert all(row.duration_us >= 0 for row in store.records()[0])
    db = sqlite3.connect(path)
    low, _ = rollups.bounds(db, STARTED_NS + HOUR, None)
    assert low == 2
    low, high = rollups.bounds(db, STARTED_NS, STARTED_NS)
    assert low <= 1
    assert high is not None
    assert high >= 1
    assert rollups.bounds(db, STARTED_NS + 9 * HOUR, None)[0] > 4
    db.close()


def test_an_older_store_is_summed_up_when_it_is_opened(path: Path) -> None:
    store = Store.open(path, durability="normal")
    talk = Conversation(store, changes={"agent": "pi"})
    talk.turn("q", "a")
    talk.turn("q2", end=End.ERROR, status=500)
    talk.turn("q2", "a2")
    before = all_rows(store, "hour", "agent"), all_rows(store, "day", "model")
    store.close()
    downgraded(path, 3)
    again = Store.open(path, durability="normal")
    assert (all_rows(again, "hour", "agent"), all_rows(again, "day", "model")) == before
    again.close()
