"""Giving space back: candidates that were turned down long ago, and whatever no release or candidate needs any more.

Only under the repository's lock: ``git gc --prune`` beside a publisher deletes what that one is about to name. Young
objects stay in any case, since a candidate's are written before the lock is taken. Large files are none of git's
business; one goes when no pointer in the repository names it.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daemon.core.releases import ReleaseState
from daemon.store.releases import lfs
from daemon.store.releases.archive import Archiving
from daemon.store.releases.git import NONE, Move
from daemon.store.releases.links import CANDIDATES
from daemon.store.releases.objects import Reader

#: Weights of gigabytes are copied in before anything names them.
_YOUNG_SECONDS: Final = 86_400.0
_DAY_NS: Final = 86_400 * 1_000_000_000
#: No pointer to a large file is longer.
_POINTER_MOST: Final = 200
_PATIENCE_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What is gone: candidates, large files; and the bytes that the store is smaller by."""

    candidates: int
    large_files: int
    bytes: int


class Sweeping(Archiving):
    """`Chain` with housekeeping. Blocking: call it off the event loop."""

    def gc(self, rejected_days: float) -> Swept:
        """Sweep now. Candidates that the gate or a person turned down ``rejected_days`` ago or before go with it.
        Raises StoreError; killed at any point, the store is whole.
        """
        with self._repository.locked() as lock, Reader(self._repository) as reader:
            before = _size(self.path)
            dropped = self._drop(reader, rejected_days, lock)
            young = f"--prune={int(_YOUNG_SECONDS)}.seconds.ago"
            self._repository.run("gc", "--quiet", young, lock=lock, seconds=_PATIENCE_SECONDS)
            large = self._lfs.collect(self._pointed(reader), _YOUNG_SECONDS)
            self._lfs.sweep()
            return Swept(dropped, large, max(0, before - _size(self.path)))

    def tidy(self, rejected_days: float) -> Swept | None:
        """Housekeeping, once a start: `gc` where that is worth it, and what killed writers left. None: it was not."""
        with Reader(self._repository) as reader:
            old = self._old(reader, rejected_days)
        if old or self._repository.is_full():
            return self.gc(rejected_days)
        self._lfs.sweep()
        return None

    def _old(self, reader: Reader, days: float) -> dict[str, str]:
        """Ref → commit of the candidates that were turned down long ago."""
        until = time.time_ns() - days * _DAY_NS
        rejected = (one for one in self._candidates(reader) if one.release.state is ReleaseState.REJECTED)
        return {f"{CANDIDATES}{one.release.job}": one.commit for one in rejected if one.release.created_ns <= until}

    def _drop(self, reader: Reader, days: float, lock: int) -> int:
        moves = [Move(ref, NONE, commit) for ref, commit in self._old(reader, days).items()]
        if moves:
            self._repository.move(moves, lock)
        return len(moves)

    def _pointed(self, reader: Reader) -> set[str]:
        """Large files that any pointer in the repository names, whatever its path: git lists a blob under one of its
        paths only, and who could choose that could have weights swept that are in use.
        """
        told = self._repository.run("cat-file", "--batch-all-objects", "--batch-check", "--unordered")
        found = set()
        for line in told.decode().splitlines():
            name, kind, size = line.split(" ")
            if kind == "blob" and int(size) <= _POINTER_MOST and (pointer := lfs.parse(reader.get(name, kind))):
                found.add(pointer.oid)
        return found


def _size(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
