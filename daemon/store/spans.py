"""Token-native capture: prompt and completion ids, log-probabilities, and the weights that made them.

A prompt is kept as what it adds to the parent's prompt and completion, so a conversation costs its length, not the
square. Shapes: prompt [P] and completion [C] u32 ids, logprobs [C] f32 (half a unit in the last place of what an
engine computes).
"""

import sqlite3
from array import array
from collections import OrderedDict
from typing import Final

from daemon.core.prefix import shared
from daemon.core.records import TokenSpan
from daemon.store.connection import Reader
from daemon.store.packing import Packer

_ENTRIES: Final = 32
_LINKS = """WITH RECURSIVE link (seq, base, kept, prompt, completion, depth) AS (
    SELECT seq, base, kept, prompt, completion, 0 FROM span WHERE seq = ?
    UNION ALL SELECT s.seq, s.base, s.kept, s.prompt, s.completion, depth + 1
    FROM link JOIN span s ON s.seq = link.base)
    SELECT kept, prompt, completion FROM link ORDER BY depth"""


class Remembered:
    """Prompt and completion of the last spans, by record. A shortcut of the writer."""

    def __init__(self) -> None:
        self._spans: OrderedDict[int, array[int]] = OrderedDict()

    def get(self, db: sqlite3.Connection, packer: Packer, seq: int) -> "array[int] | None":
        if seq in self._spans:
            return self._spans.pop(seq)  # its continuation takes its place
        row = db.execute("SELECT 1 FROM span WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else _tokens(db, packer, seq)

    def put(self, seq: int, tokens: "array[int]") -> None:
        self._spans[seq] = tokens
        if len(self._spans) > _ENTRIES:
            self._spans.popitem(last=False)

    def forget(self) -> None:
        self._spans.clear()


def keep(
    db: sqlite3.Connection, packer: Packer, span: TokenSpan, *, weights: int, place: tuple[int, int | None],
    remembered: Remembered,
) -> None:  # fmt: skip
    """Store a record's span; ``place`` is (its seq, its parent's)."""
    seq, parent = place
    prompt, completion = array("I", span.prompt_ids), array("I", span.completion_ids)
    before = None if parent is None else remembered.get(db, packer, parent)
    kept = 0 if before is None else shared(before, prompt)
    db.execute(
        "INSERT INTO span VALUES (?,?,?,?,?,?,?)",
        (
            seq, parent if kept else None, kept, weights, packer.pack(prompt[kept:].tobytes()),
            packer.pack(completion.tobytes()), packer.pack(array("f", span.logprobs).tobytes()),
        ),
    )  # fmt: skip
    remembered.put(seq, prompt + completion)


def span(reader: Reader, receipt: str) -> TokenSpan | None:
    """The span of a record, or None where the engine could not capture one."""
    row = reader.db.execute(
        "SELECT seq, weights, completion, logprobs FROM span WHERE seq = (SELECT seq FROM record WHERE receipt = ?)",
        (receipt,),
    ).fetchone()
    if row is None:
        return None
    seq, weights, packed, logprobs = row
    completion = _array("I", reader.packer.unpack(packed))
    whole = _tokens(reader.db, reader.packer, seq)
    return TokenSpan(
        prompt_ids=tuple(whole[: len(whole) - len(completion)]),
        completion_ids=tuple(completion),
        logprobs=tuple(_array("f", reader.packer.unpack(logprobs))),
        weights=reader.names.text(reader.db, weights),
    )


def answer_span(reader: Reader, seq: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Ids and log-probabilities of a record's answer, both [C]; empty where the engine could not capture them."""
    row = reader.db.execute("SELECT completion, logprobs FROM span WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        return (), ()
    completion, logprobs = (reader.packer.unpack(part) for part in row)
    return tuple(_array("I", completion)), tuple(_array("f", logprobs))


def write_out(db: sqlite3.Connection, packer: Packer, seq: int) -> None:
    """Keep a span's prompt whole, so that the one it was a difference to can go."""
    (packed,) = db.execute("SELECT completion FROM span WHERE seq = ?", (seq,)).fetchone()
    whole = _tokens(db, packer, seq)
    prompt = whole[: len(whole) - len(_array("I", packer.unpack(packed)))]
    db.execute("UPDATE span SET base = NULL, kept = 0, prompt = ? WHERE seq = ?", (packer.pack(prompt.tobytes()), seq))


def _tokens(db: sqlite3.Connection, packer: Packer, seq: int) -> "array[int]":
    """Prompt and completion, put together along the links."""
    parts: list[array[int]] = []
    wanted: int | None = None
    for kept, prompt, completion in db.execute(_LINKS, (seq,)):
        own = _array("I", packer.unpack(prompt) + packer.unpack(completion))
        parts.append(own if wanted is None else own[: max(0, wanted - kept)])
        wanted = kept if wanted is None else min(wanted, kept)
        if wanted == 0:
            break
    whole = array("I")
    for part in reversed(parts):
        whole += part
    return whole


def _array(code: str, data: bytes) -> "array[int]":
    values: array[int] = array(code)
    values.frombytes(data)
    return values
