"""Putting a whole chain aside: its refs get other names, and every commit stays.

What an agent ran must be found again however long ago a scenario was removed, so nothing is deleted here. ``git log
refs/reef-archive/NAME/…`` reads it with nothing of Reef.
"""

import hashlib
from typing import Final

from daemon.store.releases.blame import Blaming
from daemon.store.releases.git import NONE, Move
from daemon.store.releases.links import CANDIDATES, HEADS, pin_of, ref_of
from daemon.store.releases.objects import Reader

ARCHIVE: Final = "refs/reef-archive/"


class Archiving(Blaming):
    """`Chain` with the way out of it. Blocking: call it off the event loop."""

    def archive(self, scenario: str) -> str | None:
        """Where a scenario's chain is from now on; None where it has none. Its candidates go with it.

        A new chain of the same name starts from the base again. Raises StoreError.
        """
        ref = ref_of(scenario)
        with self._repository.locked() as lock, Reader(self._repository) as reader:
            tip = self._repository.ref(ref)
            candidates = {c.commit: c.release.job for c in self._candidates(reader, scenario)}
            mark = (tip or hashlib.sha256(repr(sorted(candidates)).encode()).hexdigest())[:12]
            place = f"{ARCHIVE}{ref.removeprefix(HEADS)}/{mark}"
            moves = [Move(f"{place}/head", tip, NONE), Move(ref, NONE, tip)] if tip else []
            if pin := self._repository.ref(pin_of(scenario)):
                moves.append(Move(pin_of(scenario), NONE, pin))
            for commit, job in candidates.items():
                moves += [Move(f"{place}/candidates/{job}", commit, NONE), Move(f"{CANDIDATES}{job}", NONE, commit)]
            if not moves:
                return None
            self._seen.forget(scenario)  # first: killed in between, the chain is there and only less watched
            (self._repository.path / "refs" / "heads" / ref.removeprefix(HEADS)).unlink(missing_ok=True)
            self._repository.move(moves, lock)
        return place
