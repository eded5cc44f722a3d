"""Messages and frames as rows."""

import sqlite3

import pytest

from daemon.core.records import Dialect, StoredMessage
from daemon.store.messages import Frame, keep_frame, keep_message
from daemon.store.migrations import migrate
from daemon.store.packing import Packer


@pytest.fixture
def db() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db)
    return db


@pytest.mark.parametrize("other", [Frame(b"a", b",b", b""), Frame(b"a", b",", b"b"), Frame(b"", b"a,", b"b")])
def test_where_a_frame_is_cut_is_part_of_its_hash(other: Frame) -> None:
    assert other.hash() != Frame(b"a,", b"", b"b").hash()


@pytest.mark.parametrize(
    ("raw", "text", "inside"),
    [
        ('{"content":"a \\"quoted\\" line\\n"}', 'a "quoted" line\n', True),
        ('{"content":"gr\\u00fc\\u00dfe"}', "grüße", True),
        ('{"content":"grüße"}', "grüße", True),
        ('{"content":"a\\/b"}', "a/b", False),
        ('{"content":[{"text":"one"},{"text":"two"}]}', "onetwo", False),
        ('{"content":null}', "", True),
    ],
)
def test_a_text_is_kept_twice_only_where_it_must_be(
    db: sqlite3.Connection, raw: str, text: str, *, inside: bool
) -> None:
    keep_message(db, Packer(), Dialect.CHAT, StoredMessage(raw.encode(), bytes(16), "user", text))
    body, text_at = db.execute("SELECT body, text_at FROM message").fetchone()
    assert (text_at is not None) == inside
    assert Packer().unpack(body) == (raw if inside else raw + text).encode()


def test_the_same_bytes_in_another_dialect_are_another_message(db: sqlite3.Connection) -> None:
    said = StoredMessage(b'{"role":"user"}', bytes(16), "user", "")
    ids = {keep_message(db, Packer(), dialect, said).id for dialect in (*Dialect, Dialect.CHAT)}
    assert len(ids) == len(Dialect)


def test_nothing_is_packed_against_something_that_is(db: sqlite3.Connection) -> None:
    """Reading is two lookups deep however long a chain of look-alikes grows."""
    packer, frame, like = Packer(), 0, None
    for number in range(5):
        said = StoredMessage(b"%d" % number + b"x" * 500, bytes(16), "user", "")
        like = keep_message(db, packer, Dialect.CHAT, said, like=like)
        frame, _ = keep_frame(db, packer, Frame(b"%d" % number + b"y" * 500, b",", b""), frame or None)
    assert db.execute("SELECT count(base), count(DISTINCT base), min(base) FROM message").fetchone() == (4, 1, 1)
    assert db.execute("SELECT count(base), count(DISTINCT base), min(base) FROM frame").fetchone() == (4, 1, 1)
