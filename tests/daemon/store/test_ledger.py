"""Nothing is lost because something is odd, and no secret is written by the way."""

import sqlite3
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.core.records import TokenSpan, Transcript
from daemon.store.db import Store
from tests.fakes.exchanges import assistant, exchange, message, record, submit, system, transcript, user

LONG = "what was said at some length, as if it were worth a dictionary: %s. " * 12 % tuple(range(12))
KEY = "sk-proj-" + "a1B2c3D4" * 6


def broken() -> Transcript:
    raise ValueError(f"a parser's bug, with {KEY} in its message")


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_what_cannot_be_parsed_is_kept_whole_and_redacted(store: Store, path: Path) -> None:
    sent = exchange(transcript([user(f"my key is {KEY}")]), response=f'{{"said":"{KEY}"}}'.encode())
    appended = store.append(sent, broken).result(20)
    assert store.request(appended.receipt).startswith(b'{"model":"m","messages":[{"role":"user"')
    assert b"[redacted:openai:" in store.request(appended.receipt)
    assert b"[redacted:openai:" in store.response(appended.receipt)
    assert store.record(appended.receipt).redacted == 2
    assert KEY.encode() not in files(path)
    assert store.verify() == []


def test_bytes_that_redaction_cannot_read_are_not_kept(store: Store) -> None:
    appended = store.append(exchange(transcript([user("hi")]), request=b"\x1f\x8b\x08\xff\xfe"), broken).result(20)
    assert store.request(appended.receipt) == b""


def test_a_transcript_that_cannot_be_written_is_kept_whole(store: Store) -> None:
    """A token id that is none: the record stays, its span does not; neighbours in the batch are not touched."""
    span = TokenSpan((-1,), (), (), "sha")
    made = [transcript([user(f"q{n}")]) for n in range(3)]
    futures = [submit(store, one, span=span if n == 1 else None) for n, one in enumerate(made)]
    receipts = [future.result(20).receipt for future in futures]
    assert [len(store.messages(receipt)) for receipt in receipts] == [1, 0, 1]
    assert b'"q1"' in store.request(receipts[1])
    assert store.verify() == []


def test_a_receipt_is_used_once(store: Store) -> None:
    first = record(store, transcript([user("a")]))
    with pytest.raises(StoreError, match="UNIQUE"):
        record(store, transcript([user("b")]), receipt=first.receipt)
    assert record(store, transcript([user("c")])).seq > first.seq
    assert store.verify() == []


def test_errors_paths_and_tags_are_redacted(store: Store, path: Path) -> None:
    """BUGS B169."""
    appended = record(
        store, transcript([user("hi")], None, note=f"the provider reported: Incorrect API key provided: {KEY}"),
        error=f"Incorrect API key provided: {KEY}", tags={"note": KEY},
        path="/v1beta/models?key=AIza" + "x1Y2z" * 7,
    )  # fmt: skip
    store.close()
    assert KEY.encode() not in files(path)
    assert b"AIzax1Y2z" not in files(path)
    error = sqlite3.connect(path).execute("SELECT error FROM record").fetchone()[0]
    assert error.startswith("Incorrect API key provided: [redacted:openai:")
    assert appended.seq == 1


def test_an_own_redactor_is_used(path: Path) -> None:
    def hide(data: bytes) -> tuple[bytes, int]:
        return data.replace(b"plum", b"****"), data.count(b"plum")

    store = Store.open(path, redact=hide)
    appended = record(store, transcript([user("hi")], None), error="a plum fell")
    assert store.record(appended.receipt).error == "a **** fell"
    store.close()


def test_a_key_of_an_older_dialect_version_stays(store: Store) -> None:
    """The same bytes under another key: the first key goes on to count, so old chains add up."""
    old = message("user", "hi")
    new = message("user", "hi")
    object.__setattr__(new, "key", bytes(16))
    record(store, transcript([old], "a"))
    appended = record(store, transcript([new], "b"))
    assert store.messages(appended.receipt)[0].key == old.key
    assert store.verify() == []


def test_what_only_looks_different_than_before_is_kept_as_a_difference(store: Store, path: Path) -> None:
    """A cache mark that moved on, and an answer that the agent writes another way than it came."""
    first, long = message("user", LONG, cache_control="here"), assistant(LONG[::-1])
    record(store, transcript([system("s"), first], long))
    again = [system("s"), user(LONG), message("assistant", LONG[::-1], refusal=None), user("go on")]
    second = record(store, transcript(again))
    with sqlite3.connect(path) as db:
        based = [raw for (raw,) in db.execute("SELECT length(body) FROM message WHERE base IS NOT NULL")]
    db.close()
    assert len(based) == 2
    assert max(based) < len(LONG) // 4
    assert [one.raw for one in store.messages(second.receipt)] == [one.raw for one in again]
