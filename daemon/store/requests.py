"""Reading what was sent and answered: the exact bytes, the messages, what was new in a request."""

import sqlite3
import struct
from collections.abc import Sequence
from hashlib import blake2b

from daemon.core.errors import NotFound
from daemon.core.records import StoredMessage
from daemon.store import messages as content
from daemon.store.connection import Reader


def request_hash(frame: bytes, messages: Sequence[bytes]) -> bytes:
    """What identifies a request's bytes: the hash over the hashes of its frame and messages."""
    return blake2b(frame + b"".join(messages), digest_size=16).digest()


def packed(ids: Sequence[int]) -> bytes:
    """Message ids as a row holds them."""
    return struct.pack(f"<{len(ids)}I", *ids)


def unpacked(blob: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(blob) // 4}I", blob)


def message_ids(db: sqlite3.Connection, seq: int) -> list[int]:
    """The ids of a request's messages, put together along its links."""
    parts: list[Sequence[int]] = []
    wanted: int | None = None
    link: int | None = seq
    while link is not None:
        link, kept, blob = db.execute("SELECT base, kept, ids FROM request WHERE seq = ?", (link,)).fetchone()
        own = unpacked(blob)
        parts.append(own if wanted is None else own[: max(0, wanted - kept)])
        wanted = kept if wanted is None else min(wanted, kept)
    return [id for part in reversed(parts) for id in part]


def new_ids(db: sqlite3.Connection, seq: int) -> list[int]:
    """The ids of the messages that a request adds to what its parent had. Seldom needs the links below."""
    return added(db, seq, db.execute("SELECT seen, kept, ids FROM request WHERE seq = ?", (seq,)).fetchone())


def added(db: sqlite3.Connection, seq: int, row: tuple[int, int, bytes]) -> list[int]:
    """The same, where ``seen``, ``kept`` and ``ids`` of the request are at hand."""
    seen, kept, blob = row
    if seen < kept:
        return message_ids(db, seq)[seen:]
    return list(unpacked(blob)[seen - kept :])


def request(reader: Reader, receipt: str) -> bytes:
    """The request's (redacted) body, byte for byte."""
    seq, frame_id, _, _ = _row(reader, receipt)
    frame = content.frame(reader, frame_id)
    raws = content.raws(reader, message_ids(reader.db, seq))
    return frame.head + frame.separator.join(raws) + frame.tail


def response(reader: Reader, receipt: str) -> bytes:
    """The response's (redacted) body; empty when none was kept."""
    seq, *_ = _row(reader, receipt)
    row = reader.db.execute("SELECT body FROM response WHERE seq = ?", (seq,)).fetchone()
    return b"" if row is None else reader.packer.unpack(row[0])


def messages(reader: Reader, receipt: str) -> list[StoredMessage]:
    seq, *_ = _row(reader, receipt)
    return content.messages(reader, message_ids(reader.db, seq))


def new_messages(reader: Reader, receipt: str) -> list[StoredMessage]:
    """The request's messages that its parent, prompt and answer together, did not have."""
    seq, *_ = _row(reader, receipt)
    return content.messages(reader, new_ids(reader.db, seq))


def answer(reader: Reader, receipt: str) -> StoredMessage | None:
    _, _, id, _ = _row(reader, receipt)
    return None if id is None else content.messages(reader, [id])[0]


def _row(reader: Reader, receipt: str) -> tuple[int, int, int | None, int]:
    row: tuple[int, int, int | None, int] | None = reader.db.execute(
        "SELECT seq, frame, answer, seen FROM request WHERE seq = (SELECT seq FROM record WHERE receipt = ?)",
        (receipt,),
    ).fetchone()
    if row is None:
        raise NotFound(f"no record {receipt!r}", hint="reef traces list")
    return row
