"""Schemas go up, each step whole, and never down."""

import sqlite3
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.core.privacy import Purge
from daemon.core.records import End
from daemon.store import migrations
from daemon.store.db import Store
from daemon.store.migrations import STEPS, migrate
from tests.daemon.store.older import downgraded
from tests.fakes.exchanges import Conversation, user


def version(db: sqlite3.Connection) -> int:
    number: int = db.execute("PRAGMA user_version").fetchone()[0]
    return number


@pytest.fixture
def db() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def test_a_new_file_gets_the_newest_schema(db: sqlite3.Connection) -> None:
    migrate(db)
    assert version(db) == len(STEPS)
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"record", "request", "response", "message", "frame", "session", "report", "span", "words"} <= names


def test_migrating_twice_changes_nothing(db: sqlite3.Connection) -> None:
    migrate(db)
    before = db.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
    migrate(db)
    assert db.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall() == before


def test_steps_are_numbered_without_a_gap() -> None:
    assert [step[:5] for step in STEPS] == [f"m{number:04}" for number in range(1, len(STEPS) + 1)]


def test_a_newer_schema_is_left_alone(path: Path) -> None:
    Store.open(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 999")
    db.close()
    with pytest.raises(StoreError, match="schema 999") as caught:
        Store.open(path)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("upgrade reef")


def test_a_step_that_fails_leaves_nothing_behind(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    migrate(db)
    (tmp_path / "m9999_broken.py").write_text('STATEMENTS = ("CREATE TABLE half (x)", "CREATE NONSENSE")')
    monkeypatch.setattr(migrations, "__path__", [*migrations.__path__, str(tmp_path)])
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, "m9999_broken"))
    with pytest.raises(sqlite3.OperationalError, match="NONSENSE"):
        migrate(db)
    assert version(db) == len(STEPS)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    assert not db.in_transaction


def test_a_step_whose_transaction_is_over_says_why(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SQLite ends it by itself where the disk is full: that there is none to roll back would hide that."""
    migrate(db)
    ends = ("CREATE TABLE one (x UNIQUE)", "INSERT INTO one VALUES (1)", "INSERT OR ROLLBACK INTO one VALUES (1)")
    (tmp_path / "m9999_ends.py").write_text(f"STATEMENTS = {ends}")
    monkeypatch.setattr(migrations, "__path__", [*migrations.__path__, str(tmp_path)])
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, "m9999_ends"))
    with pytest.raises(sqlite3.IntegrityError, match=r"one\.x"):
        migrate(db)


def test_sessions_of_an_older_version_are_counted_when_it_is_opened(store: Store, path: Path) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    talk.turn("q", end=End.ERROR, status=500)
    talk.turn("q")
    talk.send([user("look")], subagent="one")
    talk.send([user("title")], side=True)
    before = store.sessions()
    store.close()
    downgraded(path, 7)
    store = Store.open(path, durability="normal")
    assert store.sessions() == before
    (row,) = before[0]
    assert (row.retries, row.subagents, row.side, row.duration_us, row.cost_usd) == (1, 1, 1, 4000, None)
    store.close()


def test_what_an_older_version_wrote_is_listed_and_forgotten(store: Store, path: Path) -> None:
    talks = [Conversation(store, changes={"scenario": name}) for name in ("pi", "codex", "pi")]
    first, *_ = [talk.turn(f"hello {n}", "hi") for n, talk in enumerate(talks)]
    store.close()
    downgraded(path, 5)
    store = Store.open(path, durability="normal")
    for talk in talks:
        talk.store = store
    assert store.verify() == []
    again = talks[0].turn("it goes on", "yes")
    assert again.session == first.session
    rows, cursor = store.sessions(limit=2)
    assert [row.scenario for row in rows] == ["pi", "pi"]
    assert [row.scenario for row in store.sessions(before=cursor)[0]] == ["codex"]
    assert store.last() == store.last("pi") == store.record(again.receipt)
    store.purges.run(Purge(sessions=(first.session,)), lambda *_: None)
    assert store.verify() == []
    store.close()
