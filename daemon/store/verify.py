"""Reads every row back and checks that it is what was written: hashes, chains, lengths, counts."""

import sqlite3

import zstandard

from daemon.core.records import Dialect
from daemon.store import messages as content
from daemon.store import tree
from daemon.store.connection import Reader
from daemon.store.requests import message_ids, request_hash
from daemon.store.spans import span


def verify(reader: Reader) -> list[str]:
    """What is wrong, a sentence each; empty when the store is sound. Takes a while: it decodes everything."""
    found = [f"sqlite: {row[0]}" for row in reader.db.execute("PRAGMA quick_check") if row[0] != "ok"]
    found += [f"sqlite: a row of {row[0]} points nowhere" for row in reader.db.execute("PRAGMA foreign_key_check")]
    keys = _messages(reader, found)
    frames = _frames(reader, found)
    for row in reader.db.execute("SELECT seq, receipt, scenario, dialect, messages FROM record").fetchall():
        try:
            found += [f"record {row[1]}: {what}" for what in _record(reader, row, keys, frames)]
        except (zstandard.ZstdError, sqlite3.Error, TypeError, KeyError, ValueError) as error:
            found.append(f"record {row[1]}: {type(error).__name__}: {error}")
    return found + _counts(reader)


def _messages(reader: Reader, found: list[str]) -> dict[int, tuple[bytes, bytes, int]]:
    """Check each message; (hash, key, raw length) by id."""
    known = {}
    for id, hash, key, size in reader.db.execute("SELECT id, hash, key, raw_bytes FROM message").fetchall():
        known[id] = (hash, key, size)
        try:
            raw = content.messages(reader, [id])[0].raw
        except (zstandard.ZstdError, UnicodeDecodeError) as error:
            found.append(f"message {id}: {error}")
        else:
            if content.digest(raw) != hash:
                found.append(f"message {id}: its bytes do not have its hash")
    return known


def _frames(reader: Reader, found: list[str]) -> dict[int, tuple[bytes, int, int]]:
    """Check each frame; (hash, bytes of head and tail, bytes of the separator) by id."""
    known = {}
    for id, hash in reader.db.execute("SELECT id, hash FROM frame").fetchall():
        try:
            frame = content.frame(reader, id)
        except zstandard.ZstdError as error:
            found.append(f"frame {id}: {error}")
            continue
        known[id] = (hash, len(frame.head) + len(frame.tail), len(frame.separator))
        if frame.hash() != hash:
            found.append(f"frame {id}: its bytes do not have its hash")
    return known


def _record(
    reader: Reader,
    row: tuple[int, str, int, str, int],
    messages: dict[int, tuple[bytes, bytes, int]],
    frames: dict[int, tuple[bytes, int, int]],
) -> list[str]:
    seq, receipt, scenario, dialect, count = row
    frame, root, chain, hash, size = reader.db.execute(
        "SELECT frame, root, chain, hash, bytes FROM request WHERE seq = ?", (seq,)
    ).fetchone()
    parts = [messages[id] for id in message_ids(reader.db, seq)]
    frame_hash, around, separator = frames[frame]
    found = []
    if len(parts) != count:
        found.append(f"{len(parts)} messages instead of {count}")
    if request_hash(frame_hash, [part[0] for part in parts]) != hash:
        found.append("its request does not have its hash")
    if around + sum(part[2] for part in parts) + separator * max(0, len(parts) - 1) != size:
        found.append(f"its request does not have its {size} bytes")
    walked = tree.start(reader.names.text(reader.db, scenario), Dialect(dialect), root)
    for key in [part[1] for part in parts] or [hash]:
        walked = tree.link(walked, key)
    if walked != chain:
        found.append("its messages do not lead to its chain")
    body = reader.db.execute("SELECT bytes, body FROM response WHERE seq = ?", (seq,)).fetchone()
    if body is not None and len(reader.packer.unpack(body[1])) != body[0]:
        found.append(f"its response does not have its {body[0]} bytes")
    tokens = span(reader, receipt)
    if tokens is not None and len(tokens.completion_ids) != len(tokens.logprobs):
        found.append(f"{len(tokens.completion_ids)} tokens with {len(tokens.logprobs)} log-probabilities")
    return found


_COUNTS = (
    ("records", "SELECT (SELECT records FROM tally), (SELECT count(*) FROM record)"),
    ("sessions", "SELECT (SELECT sessions FROM tally), (SELECT count(*) FROM session)"),
    ("reports", "SELECT (SELECT reports FROM tally), (SELECT count(*) FROM report)"),
    ("requests", "SELECT (SELECT records FROM tally), (SELECT count(*) FROM request)"),
    (
        "records in sums by hour",
        """SELECT coalesce(sum(CASE unit WHEN 'hour' THEN records END), 0),
        coalesce(sum(CASE unit WHEN 'day' THEN records END), 0) FROM rollup""",
    ),
    ("records of sessions", "SELECT (SELECT records FROM tally), (SELECT sum(records) FROM session)"),
)


def _counts(reader: Reader) -> list[str]:
    found = []
    for what, sql in _COUNTS:
        counted, there = reader.db.execute(sql).fetchone()
        if counted != (there or 0):
            found.append(f"{counted} {what} counted, {there} there")
    return found
