"""The links of a scenario's chain, and the candidates beside it: found in the repository and proved.

The head is the newest release that is proved (`commits.verified`) and follows the one before it. A tip that is not, or
a chain that got shorter than it once was, is told as ``trouble`` beside the newest good one: serving goes on, on what
can be trusted.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from daemon.core.errors import NotFound, Untrusted
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, Release, ReleaseState
from daemon.core.sshsig import Signer
from daemon.store.releases import commits, lfs, manifest
from daemon.store.releases.commits import Snapshot
from daemon.store.releases.git import Repository
from daemon.store.releases.index import Index
from daemon.store.releases.objects import Reader
from daemon.store.releases.seen import Seen

HEADS: Final = "refs/reef/"
CANDIDATES: Final = "refs/reef-candidates/"
#: The release that a scenario's clients are held at.
PINS: Final = "refs/reef-pins/"
_PARENT: Final = re.compile(rb"^parent ([0-9a-f]{40})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tip:
    """A head with what publishing on it needs: its commit, and where the ref really is."""

    head: Snapshot | None
    at: str | None
    trouble: str | None

    @property
    def id(self) -> str:
        return self.head.release.id if self.head else BASE_RELEASE

    @property
    def number(self) -> int:
        return self.head.release.number if self.head else 0


def ref_of(scenario: str) -> str:
    """``work/api`` becomes ``refs/reef/work%2Fapi``: else no scenario could be called ``work`` beside it."""
    name = quote(scenario, safe="._-")
    return HEADS + (f"{name[:-5]}%2Elock" if name.endswith(".lock") else name)


def pin_of(scenario: str) -> str:
    return PINS + ref_of(scenario).removeprefix(HEADS)


class Links:
    """What `Chain` and `Releases` stand on. Blocking: call it off the event loop."""

    def __init__(self, home: Home, repository: Repository, signer: Signer) -> None:
        self._repository = repository
        self._signer = signer
        self._lfs = lfs.Objects(repository.path)
        self._index = Index(repository)
        self._seen = Seen(home.releases_seen)

    @property
    def path(self) -> Path:
        return self._repository.path

    def _tip(self, reader: Reader, scenario: str) -> Tip:
        at = self._repository.ref(ref_of(scenario))
        head, trouble = self._newest(reader, scenario, at)
        number, commit = self._seen.all().get(scenario, (0, ""))
        if number > (head.release.number if head else 0):
            told = f"{scenario}: the chain ends before release {number}, which was its head"
            try:
                head, trouble = self._proved(reader, scenario, commit), trouble or told
            except Untrusted:
                trouble = trouble or told
        return Tip(head, at, trouble)

    def _newest(self, reader: Reader, scenario: str, at: str | None) -> tuple[Snapshot | None, str | None]:
        trouble: str | None = None
        while at:
            try:
                return self._proved(reader, scenario, at), trouble
            except Untrusted as error:
                trouble = trouble or f"{scenario}: its newest release is not used: {error.message}"
            at = _parent(reader, at)
        return None, trouble

    def _proved(self, reader: Reader, scenario: str, name: str) -> Snapshot:
        """A link of this scenario's chain. Raises Untrusted for what is none, however well signed it is."""
        snapshot = commits.verified(reader, name, self._signer.public)
        release = snapshot.release
        if release.scenario != scenario:
            raise Untrusted(f"{release.id} is a release of {release.scenario!r}")
        if release.number < 1 or release.state is not ReleaseState.RELEASED:
            raise Untrusted(f"{release.id} is a candidate that was not released")
        number, parent = 0, BASE_RELEASE
        if snapshot.parent is not None:
            before = commits.linked(reader, snapshot.parent, self._signer.public).release
            number, parent = before.number, before.id
            if before.scenario != scenario:
                raise Untrusted(f"{release.id} follows a release of {before.scenario!r}")
        if release.number != number + 1 or release.parent != parent:
            raise Untrusted(f"{release.id} says it follows {release.parent}, it stands after {parent}")
        return snapshot

    def _pinned(self, reader: Reader, scenario: str, tip: Tip) -> Snapshot | None:
        """The link that a pin names. Raises Untrusted for a pin that names none."""
        at = self._repository.ref(pin_of(scenario))
        if at is None:
            return None
        snapshot = self._proved(reader, scenario, at)
        number = snapshot.release.number
        if number > tip.number or self._at(tip, number) != at:
            raise Untrusted(f"{scenario}: the pin names {snapshot.release.id}, which is not in the chain")
        return snapshot

    def _at(self, tip: Tip, number: int) -> str | None:
        """The commit of a link, by its number."""
        assert tip.head is not None
        links = self._index.links(tip.head.release.scenario, tip.head.commit)
        return links[number - 1] if number <= len(links) else None

    def _again(self, reader: Reader, release: Release) -> Snapshot:
        """The snapshot of a release that was read before, proved now."""
        if release.commit is None:
            raise NotFound(f"{release.id} has no commit", hint="reef releases list")
        snapshot = commits.verified(reader, release.commit, self._signer.public)
        if snapshot.release.id != release.id:
            raise Untrusted(f"commit {release.commit[:12]} is {snapshot.release.id}, not {release.id}")
        return snapshot

    def _find(self, reader: Reader, scenario: str, id: str, tip: Tip) -> Snapshot:
        if tip.head is not None and id == tip.id:
            return tip.head
        number = manifest.number_of(id)
        if number == 0:
            return self._find_candidate(reader, scenario, id, tip)
        if number and tip.head is not None and number <= tip.number:
            name = self._at(tip, number)
            snapshot = self._proved(reader, scenario, name) if name else None
            if snapshot is not None and id in (snapshot.release.id, f"r{number}"):
                return snapshot
        raise self._not_found(scenario, id)

    def _find_candidate(self, reader: Reader, scenario: str, id: str, tip: Tip) -> Snapshot:
        for found in self._candidates(reader, scenario):
            if found.release.id == id:
                return commits.verified(reader, found.commit, self._signer.public)
        if tip.head is not None:
            name = self._index.marked(scenario, tip.head.commit, id.partition("-")[2])
            if name is not None:
                return self._proved(reader, scenario, name)
        raise self._not_found(scenario, id)

    def _not_found(self, scenario: str, id: str) -> NotFound:
        return NotFound(f"{scenario} has no release {id[:60]!r}", hint="reef releases list --state all")

    def _candidates(self, reader: Reader, scenario: str | None = None) -> Iterator[Snapshot]:
        """Candidates of one scenario or all, signed, in no order. What somebody else put there is none."""
        for name in self._repository.refs(CANDIDATES).values():
            with suppress(Untrusted):
                found = commits.linked(reader, name, self._signer.public)
                if found.release.number == 0 and scenario in (None, found.release.scenario):
                    yield found


def _parent(reader: Reader, name: str) -> str | None:
    """What a commit that is not trusted says it follows; whatever that is gets proved in turn."""
    try:
        found = _PARENT.search(reader.get(name, "commit").partition(b"\n\n")[0])
    except Untrusted:
        return None
    return found[1].decode() if found else None
