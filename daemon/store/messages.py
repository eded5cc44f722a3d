"""Messages and frames: the exact bytes of a request, each part once.

A message is kept under the hash of its raw bytes. One that only looks different (an agent moved ``cache_control`` or
folded a list) has the same key as one in the request before and is compressed against it; a frame is compressed
against the frame of the session's last record. What is compressed against something is never itself such a base, so
reading is two lookups deep.
"""

import json
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Final, NamedTuple

from daemon.core.records import Dialect, StoredMessage
from daemon.store import unspaced
from daemon.store.connection import Reader, in_parts
from daemon.store.packing import Packer

#: Below this a dictionary saves less than it costs to read.
_WORTH_BASE: Final = 256
#: Characters.
_PIECE: Final = 1 << 20
#: Of a text, looked for first: a search for all of it costs more.
_BEGINNING: Final = 64
_STRING: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """A message in the store: its row, the hash of its raw bytes, and the key that counts for the prefix chain.

    The key is the one it was first stored with: a later version of a dialect may compute another, and the chains
    of old records must still add up.
    """

    id: int
    hash: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a request's messages: ``head + separator.join(messages) + tail``."""

    head: bytes
    separator: bytes
    tail: bytes

    def hash(self) -> bytes:
        digest = blake2b(struct.pack("<QQ", len(self.head), len(self.separator)), digest_size=16)
        for part in (self.head, self.separator, self.tail):
            digest.update(part)
        return digest.digest()


def digest(data: bytes) -> bytes:
    """The content address: BLAKE2b, 16 bytes."""
    return blake2b(data, digest_size=16).digest()


def keep_message(
    db: sqlite3.Connection, packer: Packer, dialect: Dialect, message: StoredMessage, *, like: Kept | None = None
) -> Kept:
    """Store ``message`` unless its bytes are there already; ``like`` is one with the same key. Only inside
    the writer's transaction."""
    hash = digest(message.raw)
    if like is not None and like.hash == hash:
        return like
    row = db.execute("SELECT id, key FROM message WHERE hash = ? AND dialect = ?", (hash, dialect)).fetchone()
    if row is not None:
        return Kept(row[0], hash, row[1])
    text_at, text_bytes = _place_of_text(message)
    whole = message.raw if text_at is not None else message.raw + message.text.encode("utf-8", "surrogatepass")
    base, dictionary = (None, None) if like is None or len(whole) < _WORTH_BASE else _base(db, packer, like.id)
    cursor = db.execute(
        "INSERT INTO message (hash, dialect, key, role, base, raw_bytes, text_at, text_bytes, body)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        (
            hash, dialect, message.key, message.role, base, len(message.raw), text_at, text_bytes,
            packer.pack(whole, dictionary),
        ),
    )  # fmt: skip
    return Kept(cursor.lastrowid or 0, hash, message.key)


def _place_of_text(message: StoredMessage) -> tuple[int | None, int]:
    """Where the text stands in the raw bytes, as a JSON string would hold it: (offset or None, bytes)."""
    for escaped in (encode_basestring, encode_basestring_ascii):
        literal = b"".join(_literal(message.text, escaped))
        at = message.raw.find(literal[:_BEGINNING])
        if at >= 0 and not message.raw.startswith(literal, at):
            at = message.raw.find(literal)
        if at >= 0:
            return at, len(literal)
    return None, 0


def _literal(text: str, escaped: Callable[[str], str]) -> Iterator[bytes]:
    """Piece by piece: megabytes at once would hold up the event loop's thread too."""
    for start in range(0, len(text), _PIECE):
        yield escaped(text[start : start + _PIECE])[1:-1].encode("utf-8", "surrogatepass")


def _base(db: sqlite3.Connection, packer: Packer, like: int) -> tuple[int, bytes]:
    """That message, or what it is compressed against itself."""
    id, body = db.execute(
        "SELECT id, body FROM message WHERE id = (SELECT coalesce(base, id) FROM message WHERE id = ?)", (like,)
    ).fetchone()
    return id, packer.unpack(body)


def keep_frame(db: sqlite3.Connection, packer: Packer, frame: Frame, like: int | None) -> tuple[int, bytes]:
    """Store ``frame`` unless it is there; ``like`` is the id of a frame that probably resembles it. Returns id and
    hash."""
    hash = frame.hash()
    row = db.execute("SELECT id FROM frame WHERE hash = ?", (hash,)).fetchone()
    if row is not None:
        return row[0], hash
    whole = frame.head + frame.separator + frame.tail
    base, dictionary = None, None
    if like is not None and len(whole) >= _WORTH_BASE:
        own, parent = db.execute("SELECT id, base FROM frame WHERE id = ?", (like,)).fetchone()
        base = own if parent is None else parent
        dictionary = packer.unpack(db.execute("SELECT body FROM frame WHERE id = ?", (base,)).fetchone()[0])
    cursor = db.execute(
        "INSERT INTO frame (hash, base, head_bytes, separator_bytes, body) VALUES (?,?,?,?,?)",
        (hash, base, len(frame.head), len(frame.separator), packer.pack(whole, dictionary)),
    )
    return cursor.lastrowid or 0, hash


def frame(reader: Reader, id: int) -> Frame:
    base, head, separator, body = reader.db.execute(
        "SELECT base, head_bytes, separator_bytes, body FROM frame WHERE id = ?", (id,)
    ).fetchone()
    like = None
    if base is not None:
        like = reader.packer.unpack(reader.db.execute("SELECT body FROM frame WHERE id = ?", (base,)).fetchone()[0])
    whole = reader.packer.unpack(body, like)
    return Frame(whole[:head], whole[head : head + separator], whole[head + separator :])


def messages(reader: Reader, ids: Sequence[int]) -> list[StoredMessage]:
    """The messages of these ids, in their order (an id may come twice)."""
    rows = _rows(reader, ids)
    found = {
        id: StoredMessage(_raw(row, data), row.key, row.role, _text(row, data)) for id, (row, data) in rows.items()
    }
    return [found[id] for id in ids]


def words(added: Iterable[StoredMessage]) -> str:
    """What the full-text index holds of a record that added these. The same text again takes it out."""
    text = "\n".join(message.text for message in added if message.role != "system")
    return unspaced.spread(text.encode("utf-8", "replace").decode())


def raws(reader: Reader, ids: Sequence[int]) -> list[bytes]:
    """The same, only the raw bytes."""
    found = {id: _raw(row, data) for id, (row, data) in _rows(reader, ids).items()}
    return [found[id] for id in ids]


class _Row(NamedTuple):
    id: int
    base: int | None
    raw_bytes: int
    text_at: int | None
    text_bytes: int
    key: bytes
    role: str
    body: bytes


def _raw(row: _Row, data: bytes) -> bytes:
    return data if row.text_at is not None else data[: row.raw_bytes]


def _text(row: _Row, data: bytes) -> str:
    if row.text_at is None:
        return data[row.raw_bytes :].decode("utf-8", "surrogatepass")
    literal = data[row.text_at : row.text_at + row.text_bytes].decode("utf-8", "surrogatepass")
    text: str = _STRING.decode(f'"{literal}"')
    return text


def _rows(reader: Reader, ids: Sequence[int]) -> dict[int, tuple[_Row, bytes]]:
    """Each row with its body unpacked."""
    rows, unpack = _select(reader, ids), reader.packer.unpack
    bases = {row.base for row in rows if row.base is not None}
    like = {row.id: unpack(row.body) for row in _select(reader, bases)}
    return {row.id: (row, unpack(row.body, None if row.base is None else like[row.base])) for row in rows}


def _select(reader: Reader, ids: Iterable[int]) -> list[_Row]:
    rows: list[_Row] = []
    for part, marks in in_parts(sorted(set(ids))):
        sql = f"SELECT {','.join(_Row._fields)} FROM message WHERE id IN ({marks})"
        rows += map(_Row._make, reader.db.execute(sql, part))
    return rows
