"""A damaged database is kept aside, whole, and recording goes on in a new one: at a start, and in the middle."""

import logging
import sqlite3
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.store.db import Store
from tests.daemon.store.test_search import indexed, until
from tests.fakes.exchanges import Conversation, record, transcript, user

PAGE = 4096


def filled(path: Path) -> None:
    store = Store.open(path, durability="normal")
    talk = Conversation(store)
    for n in range(200):
        talk.turn(f"question {n}", "answer " * 40)
    store.close()


def damaged(path: Path, first: int, last: int | None = None) -> bytes:
    """Overwrite pages, counted from 1, up to the end where ``last`` is not given."""
    data = bytearray(path.read_bytes())
    end = len(data) if last is None else last * PAGE
    data[(first - 1) * PAGE : end] = b"\xa5" * (end - (first - 1) * PAGE)
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a text" * 50, b"SQLite format 3\0" + b"\xff" * 8000]
)
def test_a_file_that_is_no_database_is_kept_aside(path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(content)
    with caplog.at_level(logging.ERROR):
        store = Store.open(path)
    (aside,) = store.kept_aside()
    assert aside.read_bytes() == content
    assert f"it is kept as {aside.name}" in caplog.text
    record(store, transcript([user("goes on")]))
    assert store.verify() == []
    store.close()
    again = Store.open(path)
    assert (again.counts()["records"], len(again.kept_aside())) == (1, 1)
    again.close()


@pytest.mark.parametrize(("first", "last"), [(1, 1), (2, None), (1, None)])
def test_a_damaged_database_is_replaced_at_the_start(path: Path, first: int, last: int | None) -> None:
    filled(path)
    content = damaged(path, first, last)
    store = Store.open(path, durability="normal")
    assert [one.read_bytes() for one in store.kept_aside()] == [content]
    assert store.counts()["records"] == 0
    record(store, transcript([user("goes on")]))
    assert store.verify() == []
    store.close()


def test_a_truncated_database_is_replaced(path: Path) -> None:
    filled(path)
    path.write_bytes(path.read_bytes()[: 20 * PAGE])
    store = Store.open(path, durability="normal")
    for n in range(20):
        record(store, transcript([user(f"goes on {n}")]))
    assert len(store.kept_aside()) == 1
    store.close()


def test_damage_found_while_writing_is_replaced_without_losing_that_record(path: Path) -> None:
    store = Store.open(path, durability="normal")
    talk = Conversation(store)
    last = [talk.turn(f"question {n}", "answer " * 40) for n in range(200)][-1]
    until(lambda: indexed(path) == 200)  # else that goes on beside the copy, and what it wrote is found in the log
    copy = sqlite3.connect(path)
    until(lambda: copy.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
    copy.close()
    damaged(path, 2)
    after = record(store, transcript([user("goes on")], "still there"))
    assert len(store.kept_aside()) == 1
    assert after.seq > last.seq, "a seq is never used again: readers resume from it"
    assert store.record(after.receipt).preview == "still there"
    assert store.counts()["records"] == 1
    assert [row.receipt for row in store.records()[0]] == [after.receipt]
    assert store.verify() == []
    store.close()


def test_a_folder_that_cannot_be_written_says_so(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.mkdir()
    with pytest.raises(StoreError, match="cannot open"):
        Store.open(path)
    assert path.is_dir()
