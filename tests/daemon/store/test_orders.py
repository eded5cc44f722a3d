"""Sessions by what they took, in pages from either end."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from daemon.core.errors import UsageError
from daemon.core.orders import Order
from daemon.core.records import Usage
from daemon.core.rows import NewReport, SessionRow
from daemon.store.db import Store
from daemon.store.orders import _INDEXES, statements
from tests.fakes.exchanges import Conversation, record, transcript, user

#: Of each session: tokens, cost, microseconds, score.
TOOK = (
    (30, None, 5000, 1.0), (10, 0.25, 9_000_000, None), (20, 1.5, 1000, 0.0), (20, None, 70_000, 4.5),
    (5, 0.0, 1000, -2.0),
)  # fmt: skip


@pytest.fixture
def filled(store: Store) -> Store:
    for n, (tokens, cost, took, score) in enumerate(TOOK):
        made = transcript([user(f"q{n}")], usage=Usage(tokens, 0, cost=cost))
        receipt = record(store, made, duration_us=took).receipt
        if score is not None:
            store.report(NewReport(f"rep_{n}", "default", score=score, references=(receipt,))).result(20)
    return store


def numbers(rows: list[SessionRow]) -> list[int]:
    return [int(row.title.removeprefix("q")) for row in rows]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (Order.TOKENS, [0, 3, 2, 1, 4]),  # of equals the one that began later is first
        (Order.COST, [2, 1, 4]),
        (Order.LATENCY, [1, 3, 0, 4, 2]),
        (Order.RATING, [3, 0, 2, 4]),
    ],
)
def test_the_most_comes_first_from_either_end_and_in_any_pages(filled: Store, order: Order, wanted: list[int]) -> None:
    whole, cursor = filled.sessions_by(order)
    assert (numbers(whole), cursor) == (wanted, None)
    for limit in (1, 2, 5):
        down, up = list[SessionRow](), list[SessionRow]()
        page, cursor = filled.sessions_by(order, limit=limit)
        down += page
        while cursor is not None:
            page, cursor = filled.sessions_by(order, limit=limit, before=cursor)
            down += page
        cursor = "0"
        while cursor is not None:
            page, cursor = filled.sessions_by(order, limit=limit, after=cursor)
            up += page
        assert down == up[::-1] == whole
    for n, row in enumerate(whole):
        assert filled.sessions_by(order, before=str(row.seq))[0] == whole[n + 1 :]


def test_a_session_moves_with_what_is_added_to_it(store: Store) -> None:
    talks = [Conversation(store, changes={"session_keys": (name,)}) for name in ("a", "b")]
    talks[0].turn("q0")
    talks[1].turn("q1")
    assert numbers(store.sessions_by(Order.TOKENS)[0]) == [1, 0]
    talks[0].turn("more")
    assert numbers(store.sessions_by(Order.TOKENS)[0]) == [0, 1]


@pytest.mark.parametrize("order", list(_INDEXES))
@pytest.mark.parametrize("up", [False, True])
def test_a_page_reads_its_index_alone(store: Store, path: Path, order: Order, up: bool) -> None:
    """From its place on, and nothing is sorted: what it costs does not grow with the list."""
    index, bound = _INDEXES[order][0], ">" if up else "<"
    with closing(sqlite3.connect(path)) as db:
        plans = [
            db.execute(f"EXPLAIN QUERY PLAN {sql.replace('?', '1')}").fetchall() for sql in statements(order, up=up)
        ]
    assert [[row[3] for row in plan] for plan in plans] == [
        [f"SEARCH session USING INDEX {index} (<expr>=? AND rowid{bound}?)"],
        [f"SEARCH session USING INDEX {index} (<expr>{bound}?)"],
    ]


def test_what_no_number_holds_has_a_place(store: Store) -> None:
    for n, score in enumerate((1e300, -1e300, 0.5)):
        receipt = record(store, transcript([user(f"q{n}")], usage=Usage(1 << 40, 0, cost=1e9))).receipt
        store.report(NewReport(f"rep_{n}", "default", score=score, references=(receipt,))).result(20)
    assert numbers(store.sessions_by(Order.RATING)[0]) == [0, 2, 1]
    for order in (Order.TOKENS, Order.COST):
        page, cursor = store.sessions_by(order, limit=2)
        assert numbers([*page, *store.sessions_by(order, before=cursor)[0]]) == [2, 1, 0]


def test_cursors_that_no_page_gave_are_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        store.sessions_by(Order.COST, before="1", after="1")
    with pytest.raises(UsageError, match="is not a cursor"):
        store.sessions_by(Order.COST, before="x")
