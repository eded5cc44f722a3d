"""What was made of bytes that come again and again, remembered by those bytes."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, Generic, TypeVar

from daemon.wire.base import Redact

_MEMORY: Final = 32 * 1024 * 1024
T = TypeVar("T")


class Memo(Generic[T]):
    """What was made of some bytes, for the redaction in force; the least recently used go first."""

    def __init__(self, limit: int = _MEMORY) -> None:
        self._limit = limit
        self._size = 0
        self._redact: Redact | None = None
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._lock = Lock()

    def get(self, raw: bytes, redact: Redact, make: Callable[[bytes, Redact], T]) -> T:
        with self._lock:
            self._begin(redact)
            found = self._entries.get(raw)
            if found is not None:
                self._entries.move_to_end(raw)
                return found
        made = make(raw, redact)
        self._keep((raw,), (made,), redact)
        return made

    def get_all(self, raws: Sequence[bytes], redact: Redact, make: Callable[[bytes, Redact], T]) -> list[T]:
        """What is known is had for one lock and a look each; only the rest is made."""
        with self._lock:
            self._begin(redact)
            get, use = self._entries.get, self._entries.move_to_end
            known = [get(raw) for raw in raws]
            for raw, found in zip(raws, known, strict=True):
                if found is not None:
                    use(raw)
        made = [make(raw, redact) if found is None else found for raw, found in zip(raws, known, strict=True)]
        new = [at for at, found in enumerate(known) if found is None]
        if new:
            self._keep([raws[at] for at in new], [made[at] for at in new], redact)
        return made

    def _begin(self, redact: Redact) -> None:
        if redact != self._redact:
            self._entries.clear()
            self._redact, self._size = redact, 0

    def _keep(self, raws: Sequence[bytes], made: Sequence[T], redact: Redact) -> None:
        with self._lock:
            if redact != self._redact:
                return
            for raw, one in zip(raws, made, strict=True):
                self._size += 0 if raw in self._entries else len(raw)
                self._entries[raw] = one
            while self._size > self._limit:
                self._size -= len(self._entries.popitem(last=False)[0])
