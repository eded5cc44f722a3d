"""Damage is found and named, wherever it is."""

import sqlite3
from pathlib import Path

import pytest

from daemon.core.records import TokenSpan
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation


@pytest.fixture
def sound(store: Store) -> Store:
    talk = Conversation(store)
    for number in range(40):
        talk.turn(f"question {number}", span=TokenSpan((1, 2), (3,), (-1.0,), "sha"))
    assert store.verify() == []
    return store


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE message SET body = (SELECT body FROM message WHERE id = 2) WHERE id = 4", "message 4: its bytes"),
        ("UPDATE message SET body = x'00' WHERE id = 4", "message 4: "),
        ("UPDATE frame SET body = x'28b52ffd'", "frame 1: "),
        ("UPDATE message SET key = zeroblob(16) WHERE id = 4", "do not lead to its chain"),
        ("UPDATE request SET chain = zeroblob(16) WHERE seq = 3", "do not lead to its chain"),
        ("UPDATE request SET ids = x'01000000' WHERE seq = 5", "messages instead of"),
        ("UPDATE request SET base = 1 WHERE seq = 20", "instead of 40"),
        ("UPDATE request SET bytes = bytes + 1 WHERE seq = 7", "does not have its"),
        ("UPDATE request SET hash = zeroblob(16) WHERE seq = 7", "does not have its hash"),
        ("DELETE FROM request WHERE seq = 40", "39 there"),
        ("UPDATE response SET bytes = 1 WHERE seq = 2", "its response does not have its 1 bytes"),
        ("UPDATE response SET body = x'00' WHERE seq = 2", "ZstdError"),
        ("UPDATE span SET logprobs = (SELECT completion FROM span WHERE seq = 1), kept = 0 WHERE seq = 9", ""),
        ("UPDATE span SET completion = x'00' WHERE seq = 9", "ZstdError"),
        ("DELETE FROM record WHERE seq = 40", "40 records counted, 39 there"),
        ("UPDATE session SET records = 1", "records of sessions"),
        ("DELETE FROM session", "points nowhere"),
        ("UPDATE tally SET reports = 5", "5 reports counted, 0 there"),
    ],
)
def test_damage_is_named(sound: Store, path: Path, damage: str, said: str) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute(damage)
    db.close()
    found = sound.verify()
    assert said == "" or any(said in line for line in found), found


def test_every_turn_after_the_damage_is_named(sound: Store, path: Path) -> None:
    """A lost message of the beginning breaks each request that holds it."""
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM message WHERE id = 2")
    db.close()
    assert len([line for line in sound.verify() if line.startswith("record ")]) >= 40
