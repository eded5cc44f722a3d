"""A scenario's chain, reading side: which release is the head, what is in it, how it came about.

Whatever is read here is proved first (`Links`). Weights are also checked byte by byte.
"""

from bisect import bisect_left
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from daemon.core import harness
from daemon.core.errors import BadWeights, Untrusted
from daemon.core.releases import BASE_RELEASE, LoraFile, Release, ReleaseState
from daemon.store.pages import page_size
from daemon.store.releases import commits, lfs
from daemon.store.releases.commits import Snapshot
from daemon.store.releases.content import acts
from daemon.store.releases.links import HEADS, Links, Tip, ref_of
from daemon.store.releases.objects import Reader
from daemon.store.releases.weights import LORA_PATH

_HARNESS: Final = "harness/"
_EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#: What of a release people may want to see a difference of.
_SHOWN: Final = ("harness", "weights", harness.ROUTING)

_Rows = list[Release]  # a method is called `list`


class Standing(NamedTuple):
    """Where a scenario is: its head, None for the base; ``trouble`` says why that is not the tip of its ref."""

    release: Release | None
    trouble: str | None

    @property
    def id(self) -> str:
        return self.release.id if self.release else BASE_RELEASE


class Chain(Links):
    """Everything about releases that changes nothing. Blocking: call it off the event loop."""

    @property
    def allowed(self) -> str:
        """The ``allowed_signers`` line that clients check manifests with (`daemon.core.sshsig.verify_manifest`)."""
        return self._signer.allowed

    def clone_commands(self, scenario: str, folder: Path | str) -> list[list[str]]:
        """What gets a scenario's releases out with nothing but git and git-lfs; history and weights included."""
        source, branch = self.path.as_uri(), ref_of(scenario).removeprefix(HEADS)
        return [
            ["git", "clone", "--branch", branch, source, str(folder)],
            ["git", "-C", str(folder), "lfs", "install", "--local"],
            ["git", "-C", str(folder), "lfs", "pull"],
        ]

    def scenarios(self) -> list[str]:
        """Those with a chain, by name."""
        refs = self._repository.refs(HEADS)
        return sorted({unquote(ref.removeprefix(HEADS)) for ref in refs} | self._seen.all().keys())

    def head(self, scenario: str) -> Release | None:
        return self.standing(scenario).release

    def standing(self, scenario: str) -> Standing:
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
        return Standing(replace(tip.head.release, head=True) if tip.head else None, tip.trouble)

    def pinned(self, scenario: str) -> Release | None:
        """What the scenario's clients are held at; None: they follow the head. Raises Untrusted."""
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            found = self._pinned(reader, scenario, tip)
            return replace(found.release, head=found.release.id == tip.id) if found else None

    def serving(self, scenario: str) -> Release | None:
        """What clients run: the pinned release, or the head, also where the pin cannot be trusted; None: the base."""
        with suppress(Untrusted):
            if pinned := self.pinned(scenario):
                return pinned
        return self.head(scenario)

    def acts(self, release: Release) -> str | None:
        """That it changes what can act by itself, and names it, against what it was made from; None: it does not."""
        return acts(self.before(release), release)

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

    def since(
        self, scenario: str, after: int, limit: int, *, records: frozenset[str] | None = None
    ) -> tuple[_Rows, bool]:
        """Releases of the chain after a number, the oldest first, and whether more follow. ``records``: only those
        that learned from one of them. Their files are not read.
        """
        size = page_size(limit)
        rows: _Rows = []
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            links = self._index.links(scenario, tip.head.commit) if tip.head else []
            for name in links[after:]:
                row = self._linked(reader, name).release
                if records is None or records & set(row.records):
                    rows.append(row)
                if len(rows) > size:
                    break
        return rows[:size], len(rows) > size

    def _released(self, reader: Reader, tip: Tip, until: int | None, count: int) -> _Rows:
        """Links made before ``until``, the newest first: those on the way from the newest of them, no others."""
        assert tip.head is not None
        at: str | None = tip.head.commit
        if until is not None:
            links = self._index.links(tip.head.release.scenario, tip.head.commit)
            number = bisect_left(links, until, key=lambda name: self._linked(reader, name).release.created_ns)
            at = links[number - 1] if number else None
        rows: _Rows = []
        while at and len(rows) < count:
            link = self._linked(reader, at)
            rows.append(replace(link.release, head=link.release.id == tip.id))
            at = link.parent
        return rows

    def _linked(self, reader: Reader, name: str) -> Snapshot:
        return commits.linked(reader, name, self._signer.public)

    def files(self, release: Release) -> dict[str, str]:
        """The harness: path below ``harness/`` (one that `daemon.core.harness` knows) → text. Raises Untrusted."""
        with Reader(self._repository) as reader:
            snapshot = self._again(reader, release)
            return {
                path.removeprefix(_HARNESS): reader.get(blob, "blob").decode()
                for path, blob in sorted(snapshot.blobs.items())
                if path.startswith(_HARNESS)
            }

    def routing(self, release: Release) -> dict[str, str]:
        """Which model answers when another is asked for; empty: each its own. Raises Untrusted."""
        if harness.ROUTING not in release.files:
            return {}
        with Reader(self._repository) as reader:
            text = reader.get(self._again(reader, release).blobs[harness.ROUTING], "blob").decode()
        try:
            return harness.routing(text)
        except ValueError as error:
            raise Untrusted(f"{release.id}: {error}", hint="update Reef") from None

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
        """A unified diff of harness, weights and routing, by default against what the release was made from."""
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            new = self._find(reader, scenario, id, tip)
            old = against or new.release.parent
            found = None if old == BASE_RELEASE else self._find(reader, scenario, old, tip).commit
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-prefix")
        told = self._repository.run(*words, found or _EMPTY_TREE, str(new.commit), "--", *_SHOWN)
        return told.decode("utf-8", "replace")
