"""The last requests of the conversations that go on right now, so that a growing one costs what is new in it; and what
records added until that is in the index.

Only a shortcut: everything in it is also in the database. The writer forgets it after a rollback.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from daemon.core.records import Dialect, StoredMessage, Transcript
from daemon.store.messages import Frame, Kept

#: Bytes of requests held, and how many conversations: a short one costs more than its bytes.
_LIMIT: Final = 64 << 20
_ENTRIES: Final = 512
#: Bytes of what is not in the index yet.
_UNREAD: Final = 8 << 20

_Start = tuple[str, Dialect, bytes, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class Remembered:
    """One stored request: ``chain`` has one entry more than ``kept``."""

    seq: int
    #: Its id and uid, and whether it is known to have a title.
    session: tuple[int, str]
    titled: bool
    raws: tuple[bytes, ...]
    kept: tuple[Kept, ...]
    chain: tuple[bytes, ...]
    #: Its answer, if it has one.
    answers: tuple[Kept, ...]
    frame: Frame
    frame_id: int
    frame_hash: bytes
    size: int


class Recent:
    """Least recently used out first. Conversations are told apart by how they begin."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_Start, Remembered] = OrderedDict()
        self._bytes = 0

    def get(self, scenario: str, dialect: Dialect, transcript: Transcript) -> Remembered | None:
        start = _start(scenario, dialect, transcript)
        found = self._entries.get(start)
        if found is not None:
            self._entries.move_to_end(start)
        return found

    def put(self, scenario: str, dialect: Dialect, transcript: Transcript, entry: Remembered) -> None:
        start = _start(scenario, dialect, transcript)
        old = self._entries.pop(start, None)
        self._bytes += entry.size - (old.size if old is not None else 0)
        self._entries[start] = entry
        while self._entries and (self._bytes > _LIMIT or len(self._entries) > _ENTRIES):
            self._bytes -= self._entries.popitem(last=False)[1].size

    def forget(self) -> None:
        self._entries.clear()
        self._bytes = 0


class Unread:
    """What each record added to its conversation, its answer included, until the index has it, and how much of that it
    has already."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[tuple[StoredMessage, ...], int]] = {}
        self._bytes = 0

    def put(self, seq: int, said: tuple[StoredMessage, ...], begun: int = 0) -> None:
        """Where too much waits already, what is not begun is read again later."""
        size = sum([len(message.raw) for message in said])
        if begun or self._bytes + size <= _UNREAD:
            self._said[seq] = said, begun
            self._bytes += size

    def take(self, seq: int) -> tuple[tuple[StoredMessage, ...], int] | None:
        found = self._said.pop(seq, None)
        if found is not None:
            self._bytes -= sum([len(message.raw) for message in found[0]])
        return found

    def forget(self) -> None:
        self._said.clear()
        self._bytes = 0


def _start(scenario: str, dialect: Dialect, transcript: Transcript) -> _Start:
    return scenario, dialect, transcript.root, tuple(message.key for message in transcript.messages[:2])
