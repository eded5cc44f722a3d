"""The log goes back into the database without anyone waiting."""

import sqlite3
import time
from pathlib import Path

import pytest

from daemon.store import checkpoint
from daemon.store.checkpoint import Checkpointer
from daemon.store.connection import open_writer


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    db = open_writer(tmp_path / "x.db", "normal")
    db.execute("CREATE TABLE t (x)")
    return db


def fill(db: sqlite3.Connection, megabytes: int) -> None:
    for _ in range(megabytes):
        db.execute("INSERT INTO t VALUES (randomblob(1000000))")


def test_a_growing_log_is_copied_by_the_thread(db: sqlite3.Connection, tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path / "x.db")
    fill(db, 5)
    assert (tmp_path / "x.db").stat().st_size < 1_000_000
    checkpointer.after_commit(db)
    deadline = time.monotonic() + 60
    while (tmp_path / "x.db").stat().st_size < 5_000_000:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    checkpointer.close()
    db.close()


def test_past_its_bound_the_log_starts_over(
    db: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_RESTART", 2 << 20)
    checkpointer = Checkpointer(tmp_path / "x.db")
    fill(db, 3)
    checkpointer.after_commit(db)
    assert (tmp_path / "x.db-wal").stat().st_size == 0
    assert db.execute("PRAGMA busy_timeout").fetchone() == (1000,)
    checkpointer.close()
    db.close()


def test_a_reader_that_stays_delays_the_next_try(
    db: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_RESTART", 2 << 20)
    checkpointer = Checkpointer(tmp_path / "x.db")
    reader = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM t").fetchall()
    fill(db, 3)
    checkpointer.after_commit(db)
    tried: list[str] = []
    db.set_trace_callback(tried.append)
    for _ in range(50):
        checkpointer.after_commit(db)
    db.set_trace_callback(None)
    assert tried == []
    reader.close()
    fill(db, 17)
    checkpointer.after_commit(db)
    assert (tmp_path / "x.db-wal").stat().st_size == 0
    checkpointer.close()
    db.close()
