"""A scenario's chain, reading side: which release is the head, what is in it, how it came about.

The head is the newest release that is proved (`commits.verified`) and follows the one before it. A tip that is not, or
a chain that got shorter than it once was, is told as ``trouble`` beside the newest good one: serving goes on, on what
can be trusted.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from daemon.core.errors import BadWeights, NotFound, Untrusted
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, LoraFile, Release, ReleaseState
from daemon.core.sshsig import Signer
from daemon.store.pages import page_size
from daemon.store.releases import commits, history, lfs, manifest
from daemon.store.releases.commits import Snapshot
from daemon.store.releases.git import Repository
from daemon.store.releases.objects import Reader
from daemon.store.releases.seen import Seen

_HEADS: Final = "refs/reef/"
CANDIDATES: Final = "refs/reef-candidates/"
LORA_PATH: Final = "weights/adapter.gguf"
_HARNESS: Final = "harness/"

_Rows = list[Release]  # a method is called `list`


class Standing(NamedTuple):
    """Where a scenario is: its head, None for the base; ``trouble`` says why that is not the tip of its ref."""

    release: Release | None
    trouble: str | None

    @property
    def id(self) -> str:
        return self.release.id if self.release else BASE_RELEASE


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
    return _HEADS + (f"{name[:-5]}%2Elock" if name.endswith(".lock") else name)


class Chain:
    """Everything about releases that changes nothing. Blocking: call it off the event loop."""

    def __init__(self, home: Home, repository: Repository, signer: Signer) -> None:
        self._repository = repository
        self._signer = signer
        self._lfs = lfs.Objects(repository.path)
        self._seen = Seen(home.releases_seen)

    @property
    def allowed(self) -> str:
        """The ``allowed_signers`` line that clients check manifests with (`daemon.core.sshsig.verify_manifest`)."""
        return self._signer.allowed

    @property
    def path(self) -> Path:
        return self._repository.path

    def clone_commands(self, scenario: str, folder: Path | str) -> list[list[str]]:
        """What gets a scenario's releases out with nothing but git and git-lfs; history and weights included."""
        source, branch = self.path.as_uri(), ref_of(scenario).removeprefix(_HEADS)
        return [
            ["git", "clone", "--branch", branch, source, str(folder)],
            ["git", "-C", str(folder), "lfs", "install", "--local"],
            ["git", "-C", str(folder), "lfs", "pull"],
        ]

    def scenarios(self) -> list[str]:
        """Those with a chain, by name."""
        refs = self._repository.refs(_HEADS)
        return sorted({unquote(ref.removeprefix(_HEADS)) for ref in refs} | self._seen.all().keys())

    def head(self, scenario: str) -> Release | None:
        return self.standing(scenario).release

    def standing(self, scenario: str) -> Standing:
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
        return Standing(replace(tip.head.release, head=True) if tip.head else None, tip.trouble)

    def get(self, scenario: str, id: str) -> Release:
        """A release of the chain, by its id or number (``r5``), or a candidate; one that was released since is found
        under its old id.

        Raises NotFound, or Untrusted for one that is not what was signed.
        """
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            release = self._find(reader, scenario, id, tip).release
            return replace(release, head=release.id == tip.id)

    def waiting(self) -> _Rows:
        """Candidates of all scenarios that wait for a person."""
        with Reader(self._repository) as reader:
            found = [found.release for found in self._candidates(reader)]
        return [release for release in found if release.state is ReleaseState.PENDING]

    def before(self, release: Release) -> Release | None:
        """The one that a release of the chain followed; None for the base."""
        return None if release.parent == BASE_RELEASE else self.get(release.scenario, release.parent)

    def list(
        self,
        scenario: str,
        limit: int = 50,
        before: str | None = None,
        *,
        states: frozenset[ReleaseState] | None = None,
    ) -> tuple[_Rows, str | None]:
        """Newest first, and the cursor of the next page. ``states``: only the chain, unless others are named.

        Rows are signed, but their files are not read.
        """
        size = page_size(limit)
        wanted = states or frozenset({ReleaseState.RELEASED})
        until = int(before) if before else None
        rows: _Rows = []
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            if tip.head is not None and ReleaseState.RELEASED in wanted:
                rows += self._released(reader, tip, until, size + 1)
            if wanted - {ReleaseState.RELEASED}:
                candidates = (found.release for found in self._candidates(reader, scenario))
                rows += [row for row in candidates if row.state in wanted and (until is None or row.created_ns < until)]
        rows.sort(key=lambda row: row.created_ns, reverse=True)
        return rows[:size], str(rows[size - 1].created_ns) if len(rows) > size else None

    def _released(self, reader: Reader, tip: Tip, until: int | None, count: int) -> _Rows:
        assert tip.head is not None
        rows: _Rows = []
        skip = 0
        while len(rows) < count:
            names = history.commits(self.path, tip.head.commit, skip=skip, count=count)
            for name in names:
                release = commits.linked(reader, name, self._signer.public).release
                if until is None or release.created_ns < until:
                    rows.append(replace(release, head=release.id == tip.id))
            if len(names) < count:
                break
            skip += count
        return rows[:count]

    def files(self, release: Release) -> dict[str, str]:
        """The harness: path below ``harness/`` → text. Raises Untrusted."""
        with Reader(self._repository) as reader:
            snapshot = self._again(reader, release)
            return {
                path.removeprefix(_HARNESS): reader.get(blob, "blob").decode()
                for path, blob in sorted(snapshot.blobs.items())
                if path.startswith(_HARNESS)
            }

    def lora(self, release: Release) -> LoraFile | None:
        """The LoRA adapter of a release or candidate, every byte checked; None where the model answers alone.

        Raises Untrusted, BadWeights.
        """
        with Reader(self._repository) as reader:
            snapshot = self._again(reader, release)
            weights = snapshot.release.weights
            if weights is None:
                return None
            pointer = lfs.parse(reader.get(snapshot.blobs[LORA_PATH], "blob"))
        if pointer is None or pointer.oid != weights.sha256:
            raise BadWeights(f"{release.id}: {LORA_PATH} is not the weights that were signed")
        return LoraFile(self._lfs.whole(pointer), weights.sha256, weights.base)

    def manifest(self, release: Release) -> tuple[bytes, str]:
        """``release.json`` and its signature, as clients verify them. Raises Untrusted."""
        with Reader(self._repository) as reader:
            snapshot = self._again(reader, release)
        return snapshot.manifest, snapshot.signature

    def diff(self, scenario: str, id: str, against: str | None = None) -> str:
        """A unified diff of harness and weights, by default against what the release was made from."""
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            new = self._find(reader, scenario, id, tip)
            old = against or new.release.parent
            found = None if old == BASE_RELEASE else self._find(reader, scenario, old, tip).commit
        return history.diff(self.path, found, new.commit)

    # -- proving ------------------------------------------------------------------------------------

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
            names = history.commits(self.path, tip.head.commit, skip=tip.number - number, count=1)
            snapshot = self._proved(reader, scenario, names[0]) if names else None
            if snapshot is not None and id in (snapshot.release.id, f"r{number}"):
                return snapshot
        raise self._not_found(scenario, id)

    def _find_candidate(self, reader: Reader, scenario: str, id: str, tip: Tip) -> Snapshot:
        for found in self._candidates(reader, scenario):
            if found.release.id == id:
                return commits.verified(reader, found.commit, self._signer.public)
        mark = id.partition("-")[2]
        if tip.head is not None:
            told = self._repository.run(
                "log", "-1", "-E", f"--grep=^Reef-Release: r[0-9]+-{mark}$", "--format=%H", tip.head.commit
            )
            if told:
                return self._proved(reader, scenario, told.decode().strip())
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


_PARENT: Final = re.compile(rb"^parent ([0-9a-f]{40})$", re.MULTILINE)


def _parent(reader: Reader, name: str) -> str | None:
    """What a commit that is not trusted says it follows; whatever that is gets proved in turn."""
    try:
        found = _PARENT.search(reader.get(name, "commit").partition(b"\n\n")[0])
    except Untrusted:
        return None
    return found[1].decode() if found else None
