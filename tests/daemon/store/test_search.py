"""The index fills by itself, after the acknowledgement."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, submit, system, transcript, user


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def found(path: Path, query: str) -> list[str]:
    db = sqlite3.connect(path)
    rows = db.execute(
        "SELECT r.preview FROM words CROSS JOIN record r ON r.seq = words.rowid WHERE words MATCH ? ORDER BY r.seq",
        (query,),
    ).fetchall()
    db.close()
    return [preview for (preview,) in rows]


def indexed(path: Path) -> int:
    db = sqlite3.connect(path)
    mark: int = db.execute("SELECT indexed FROM tally").fetchone()[0]
    db.close()
    return mark


def test_what_was_said_is_found_where_it_was_new(store: Store, path: Path) -> None:
    talk = Conversation(store, said=[system("everyone has this prompt")])
    talk.turn("how do tides work", "by the moon")
    talk.turn("and on a lake", "hardly at all")
    until(lambda: indexed(path) == 2)
    assert found(path, "tides") == ["by the moon"]
    assert found(path, "moon") == ["by the moon"]
    assert found(path, "lake AND hardly") == ["hardly at all"]
    assert found(path, "tid*") == ["by the moon"]
    assert found(path, "prompt") == []


def test_a_burst_is_indexed_to_the_end(store: Store, path: Path) -> None:
    for number in range(100):
        submit(store, transcript([user(f"needle{number}")]))
    until(lambda: indexed(path) == 100)
    assert len(found(path, "needle99")) == 1


def test_what_a_crash_left_out_is_indexed_later(path: Path) -> None:
    store = Store.open(path, durability="normal")
    Conversation(store).turn("needle", "first")
    store.close()
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE tally SET indexed = 0")
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    db.close()
    store = Store.open(path, durability="normal")
    until(lambda: indexed(path) == 1)
    assert found(path, "needle") == ["first"]
    store.close()
