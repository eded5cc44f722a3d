"""What is made of records after their acknowledgement: signals beside the index, each once, whatever comes between."""

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.records import Dialect, End, Message, Text, ToolResult
from daemon.core.rows import SignalName
from daemon.store import afterwards, forget
from daemon.store.connection import Pool, open_writer
from daemon.store.db import Store
from daemon.store.ledger import Ledger
from daemon.store.migrations import migrate
from daemon.store.names import Names
from daemon.store.preparing import Prepared
from daemon.store.recent import Unread
from tests.daemon.store.test_search import indexed, until
from tests.fakes.exchanges import Conversation, exchange, record, submit, tool, transcript, user


def read(_: Dialect, raw: bytes) -> Message:
    said = json.loads(raw)
    if said["role"] == "tool":
        return Message("tool", (ToolResult("1", said["content"]),))
    return Message(said["role"], (Text(said["content"]),))


@pytest.fixture
def reading(path: Path) -> Iterator[Store]:
    store = Store.open(path, durability="normal", read=read)
    yield store
    store.close()


def told(store: Store, path: Path, count: int) -> list[list[tuple[str, int | None, str]]]:
    until(lambda: indexed(path) == count)
    found = store.signals_on(range(1, count + 1))
    return [[(one.name, one.value, one.text) for one in found.get(seq, [])] for seq in range(1, count + 1)]


def test_the_next_request_tells_of_the_answer_before_it(reading: Store, path: Path) -> None:
    talk = Conversation(reading)
    talk.turn("do it", "calling")
    talk.send([*talk.said, tool("x\n\nCommand exited with code 3")], "done")
    last = talk.turn("no, not so")
    assert told(reading, path, 3) == [
        [(SignalName.TOOL, 3, "x Command exited with code 3")],
        [(SignalName.TURN, None, "no, not so")],
        [],
    ]
    assert reading.signals_on([2])[2][0].at == last.receipt


def test_retries_stops_and_a_way_back(reading: Store, path: Path) -> None:
    talk = Conversation(reading, changes={"session_keys": ("k",)})
    talk.turn("q", end=End.ERROR, status=500)
    talk.turn("q", "a")
    beginning = list(talk.said)
    talk.turn("wrong way", "b")
    talk.said = beginning
    talk.turn("other way", end=End.CANCELLED)
    names = [[name for name, _, _ in one] for one in told(reading, path, 4)]
    assert names == [[SignalName.RETRIED], [SignalName.TURN, SignalName.TURN], [SignalName.LEFT], [SignalName.STOPPED]]


def test_signals_of_an_older_store_are_made_when_it_is_opened(path: Path) -> None:
    without = Store.open(path, durability="normal")
    talk = Conversation(without)
    talk.turn("q", "a")
    talk.turn("good, and now?")
    without.close()
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE tally SET indexed = 0")
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    db.close()
    store = Store.open(path, durability="normal", read=read)
    try:
        assert told(store, path, 2)[0] == [(SignalName.TURN, None, "good, and now?")]
        assert store.verify() == []
    finally:
        store.close()


def test_reports_and_signals_leave_each_other_alone(reading: Store, path: Path) -> None:
    talk = Conversation(reading)
    talk.turn("q", "a")
    talk.turn("hm")
    told(reading, path, 2)
    assert reading.counts()["reports"] == 0
    assert reading.session(reading.records()[0][0].session).score is None


def test_another_sessions_record_is_never_told_of(reading: Store, path: Path) -> None:
    record(reading, transcript([user("one")]))
    record(reading, transcript([user("two")]))
    assert told(reading, path, 2) == [[], []]


def test_a_load_that_never_pauses_is_caught_up_with_too(store: Store, path: Path) -> None:
    begin = time.monotonic()
    while indexed(path) == 0:
        assert time.monotonic() - begin < 30
        submit(store, transcript([user("q")]))
        time.sleep(0.02)


@pytest.fixture
def long(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[sqlite3.Connection, Unread]]:
    """A record that takes four steps to be indexed."""
    monkeypatch.setattr(afterwards, "_LETTERS", 40)
    path.parent.mkdir()
    db, ledger = open_writer(path, "normal"), Ledger(Names())
    migrate(db)
    made = transcript([user(f"word{n} and so on") for n in range(9)], "the end")
    ledger.append(db, Prepared(exchange(made), made))
    yield db, ledger.unread
    db.close()


def step(db: sqlite3.Connection, path: Path, unread: Unread) -> bool:
    pool = Pool(path)
    with pool.reader() as reader:
        more = afterwards.catch_up(db, reader, None, unread) == afterwards.BATCH
    pool.close()
    return more


def found(db: sqlite3.Connection, *words: str) -> list[int]:
    return [db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (word,)).fetchone()[0] for word in words]


@pytest.mark.parametrize("again", [False, True])
def test_a_long_record_is_indexed_in_parts(long: tuple[sqlite3.Connection, Unread], path: Path, *, again: bool) -> None:
    """``again``: a crash on the way, then from its beginning."""
    db, unread = long
    assert step(db, path, unread)
    assert step(db, path, unread)
    assert found(db, "word0", "word8") == [1, 0]
    steps = 1
    while step(db, path, Unread() if again and steps == 1 else unread):
        steps += 1
    assert found(db, "word0", "word8", "end", "word0 AND word8") == [1, 1, 1, 1]


def test_what_is_indexed_in_part_is_forgotten_too(long: tuple[sqlite3.Connection, Unread], path: Path) -> None:
    db, unread = long
    assert step(db, path, unread)
    assert found(db, "word0") == [1]
    pool = Pool(path)
    with pool.reader() as reader:
        forget.remove(db, reader, [1], {})
    pool.close()
    assert found(db, "word0") == [0]
