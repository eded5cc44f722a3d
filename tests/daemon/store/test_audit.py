"""The audit log: a chain that shows whatever was done to it."""

import sqlite3
from pathlib import Path

import pytest

from daemon.store import audit
from daemon.store.db import Store


@pytest.fixture
def told(store: Store) -> Store:
    for number in range(5):
        store.purges._transact(lambda db, number=number: audit.add(db, "pause", {"seconds": number})).result(20)  # type: ignore[misc]
    return store


def checked(store: Store) -> tuple[int, str, str | None]:
    with store._pool.reader() as reader:
        return audit.check(reader)


def tamper(path: Path, *statements: str) -> None:
    """As somebody does who has the file: triggers are no hindrance to them."""
    db = sqlite3.connect(path)
    for statement in ("DROP TRIGGER audit_is_final", "DROP TRIGGER audit_stays", *statements):
        db.execute(statement)
    db.commit()
    db.close()


def test_entries_are_read_newest_first_in_pages(told: Store) -> None:
    with told._pool.reader() as reader:
        first, cursor = audit.entries(reader, 3, None)
        rest, end = audit.entries(reader, 3, cursor)
    assert [row.facts["seconds"] for row in first + rest] == [4, 3, 2, 1, 0]
    assert end is None
    count, head, wrong = checked(told)
    assert (count, head, wrong) == (5, first[0].hash, None)


def test_an_empty_log_is_whole(store: Store) -> None:
    assert checked(store) == (0, "00" * 32, None)


@pytest.mark.parametrize("sql", ["UPDATE audit SET event = 'x' WHERE seq = 2", "DELETE FROM audit WHERE seq = 5"])
def test_the_store_itself_changes_nothing(told: Store, path: Path, sql: str) -> None:
    db = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="final"):
        db.execute(sql)
    db.close()


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("UPDATE audit SET facts = '{}' WHERE seq = 3", "entry 3 was changed"),
        ("UPDATE audit SET at_ns = at_ns + 1 WHERE seq = 3", "entry 3 was changed"),
        ("UPDATE audit SET event = 'resume' WHERE seq = 1", "entry 1 was changed"),
        ("DELETE FROM audit WHERE seq = 3", "entry 3 is missing"),
        ("DELETE FROM audit WHERE seq = 1", "entry 1 is missing"),
        ("UPDATE audit SET seq = 9 WHERE seq = 5", "entry 5 is missing"),
    ],
)
def test_what_was_done_to_it_is_found(told: Store, path: Path, sql: str, wrong: str) -> None:
    tamper(path, sql)
    assert (checked(told)[2] or "").startswith(wrong)


def test_a_cut_end_shows_in_the_count_and_the_hash_that_somebody_kept(told: Store, path: Path) -> None:
    count, head, _ = checked(told)
    tamper(path, "DELETE FROM audit WHERE seq = 5")
    assert checked(told)[:2] != (count, head)


def test_it_goes_on_over_restarts(told: Store, path: Path) -> None:
    before = checked(told)
    told.close()
    again = Store.open(path, durability="normal")
    assert checked(again) == before
    again.purges._transact(lambda db: audit.add(db, "resume", {})).result(20)
    assert checked(again)[0] == 6
    assert checked(again)[2] is None
    again.close()
