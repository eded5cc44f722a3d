"""A summary in the place of a history, sent by an agent without ids: how what begins with it is known to go on.

The answer to a request for a summary leaves points for its longest pieces. Agents repeat it whole, in words and tags of
their own and without the thoughts before it; so all of its pieces must be in what the new conversation begins with.
One piece alone proves nothing: a summary and every first message may quote the same rules.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

from daemon.core.records import End, Exchange, StoredMessage, Transcript
from daemon.store import kinds

_THOUGHTS: Final = ("analysis", "scratchpad", "thinking")
#: What agents write around or between pieces.
_BETWEEN: Final = re.compile(r"[\n<>]+")
_SHORTEST: Final = 20
_PIECES: Final = 2
#: How much of a new conversation is looked at: so many messages, letters of each and pieces of all.
_MESSAGES: Final = 4
_LETTERS: Final = 1 << 16
_MOST: Final = 900


def points(exchange: Exchange, transcript: Transcript) -> list[bytes]:
    """What a summary leaves; nothing where the answer is none, or too short to be told from another."""
    answer = transcript.answer
    if answer is None or exchange.end is not End.OK or not kinds.is_compaction(transcript.messages):
        return []
    found = sorted(set(_pieces(_said(answer.text))), key=lambda piece: (-len(piece), piece))[:_PIECES]
    return [_point(exchange, piece) for piece in found] if len(found) == _PIECES else []


def summed_up(db: sqlite3.Connection, exchange: Exchange, messages: Sequence[StoredMessage]) -> int | None:
    """The latest session whose main line stands still since the summary that these messages repeat was made."""
    said = [message.text[:_LETTERS] for message in messages if message.role in ("user", "system")][:_MESSAGES]
    hashes = list({_point(exchange, piece): None for text in said for piece in _pieces(text)})[:_MOST]
    row = db.execute(
        f"""SELECT r.session FROM point p JOIN record r ON r.seq = p.seq JOIN session s ON s.id = r.session
        WHERE p.hash IN ({",".join("?" * len(hashes))}) AND s.main_seq < p.seq
        GROUP BY p.seq HAVING count(*) = {_PIECES} ORDER BY p.seq DESC LIMIT 1""",
        hashes,
    ).fetchone()
    return None if row is None else int(row[0])


def _said(text: str) -> str:
    """It without its thoughts, in one look at each tag: a model may repeat one without end."""
    for tag in _THOUGHTS:
        first, *rest = text.split(f"<{tag}>")
        cut = [part.partition(f"</{tag}>") for part in rest]
        text = "\n".join([first, *(after if ends else begun for begun, ends, after in cut)])
    return text


def _pieces(text: str) -> Iterator[str]:
    for piece in _BETWEEN.split(text):
        if len(words := piece.strip()) >= _SHORTEST:
            yield words


def _point(exchange: Exchange, piece: str) -> bytes:
    words = ("summary", exchange.scenario, exchange.dialect, exchange.agent or "", piece)
    return blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
