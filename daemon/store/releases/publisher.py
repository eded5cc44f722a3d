"""The chain's writing side: candidates kept, released, turned down; rollbacks.

A head moves only here, under the repository's one lock, by compare-and-swap, to a commit whose objects are on disk. A
job is released at most once however often that is asked for. Nothing here judges: who calls has the gate's word or a
person's.
"""

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from daemon.core import sshsig
from daemon.core.errors import Conflict, GateRefused, NotFound, RecipeError
from daemon.core.paths import Home
from daemon.core.plaintext import one_line
from daemon.core.releases import (
    BASE_RELEASE,
    Candidate,
    GateResult,
    Release,
    ReleaseKind,
    ReleaseState,
)
from daemon.store.releases import commits
from daemon.store.releases.commits import Snapshot
from daemon.store.releases.content import LONGEST_REASON, acts, content, described
from daemon.store.releases.git import NONE, Move, Repository
from daemon.store.releases.links import CANDIDATES, HEADS, Tip, pin_of, ref_of
from daemon.store.releases.objects import Reader, Writer
from daemon.store.releases.remote import Pushing

_JOB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
#: Tips that were cut off, because they could not be proved, when the chain went on without them.
_CUT: Final = "refs/reef-cut/"


class Releases(Pushing):
    """All scenarios' releases of one home. Blocking: call it off the event loop; safe beside other processes."""

    @classmethod
    def open(cls, home: Home) -> "Releases":
        """Makes key and repository on first use. Raises ConfigError, StoreError."""
        signer = sshsig.signer(home)
        allowed = home.release_key.with_name(f"{home.release_key.name}.allowed")
        return cls(home, Repository.open(home.releases, allowed), signer)

    def propose(
        self, candidate: Candidate, gate: GateResult | None, state: ReleaseState = ReleaseState.PENDING, note: str = ""
    ) -> Release:
        """Keep a candidate, outside the chain. For a job that has one already, or was released, that one instead.

        Raises RecipeError for a harness that may not be released, BadWeights, NotFound for an unknown parent,
        Untrusted, StoreError.
        """
        if not _JOB.fullmatch(candidate.job):
            raise RecipeError(f"{candidate.job!r} is not a job's id")
        with Reader(self._repository) as reader:
            if known := self._known(reader, candidate):
                return known  # its parent may be the very release it became
            parent = self._parent(reader, candidate)
            writer = Writer(self._repository)
            blobs, files, weights = content(writer, self._lfs, candidate, parent)
        release = described(candidate, gate, state, note)
        mark = hashlib.sha256(f"{candidate.job} {release.created_ns} {sorted(files.items())}".encode()).hexdigest()[:8]
        release = replace(release, id=f"r0-{mark}", files=files, weights=weights)
        if state is ReleaseState.PENDING and not note:
            release = replace(release, note=acts(parent.release if parent else None, release) or "")
        made = commits.make(writer, self._signer, release, blobs, parent=parent.commit if parent else None)
        writer.settle()
        with self._repository.locked() as lock, Reader(self._repository) as reader:
            if known := self._known(reader, candidate):
                return known
            commits.verified(reader, made.commit, self._signer.public)  # a `gc` since may have taken what nothing named
            self._repository.move([Move(CANDIDATES + candidate.job, made.commit, NONE)], lock)
        return made.release

    def publish(self, proposed: Release, expected_head: str, *, by_person: bool = False) -> Release:
        """Make a candidate the head of its chain, unless its job was released before: then that release, unchanged.

        Raises Conflict when the head is not ``expected_head``, or not what the candidate was made from; GateRefused
        for one that changes what can act by itself, unless ``by_person``: then a person has said yes to it.
        """
        scenario = proposed.scenario
        assert proposed.commit is not None
        assert proposed.job is not None
        with self._repository.locked() as lock, Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            if done := self._published(reader, scenario, proposed.job, tip):
                if moves := self._without_candidate(proposed.job):
                    self._repository.move(moves, lock)
                return replace(done.release, head=done.release.id == tip.id)
            if not expected_head == proposed.parent == tip.id:
                raise Conflict(
                    f"{proposed.id} was made from {proposed.parent}, the head of {scenario!r} is {tip.id}",
                    hint=f"reef releases diff {proposed.id}; another run of the recipe starts from the new head",
                )
            kept = self._again(reader, proposed)
            if not by_person and (what := acts(tip.head.release if tip.head else None, kept.release)):
                raise GateRefused(f"{proposed.id} waits for a person: {what}", hint=f"reef releases diff {proposed.id}")
            release = replace(kept.release, kind=proposed.kind, id=f"r{tip.number + 1}-{proposed.id.partition('-')[2]}")
            made = self._extend(tip, release, kept.blobs, lock)
            return made.release

    def reject(self, scenario: str, id: str, note: str = "turned down by a person") -> Release:
        return self.retell(scenario, id, ReleaseState.REJECTED, note)

    def retell(self, scenario: str, id: str, state: ReleaseState, note: str) -> Release:
        """Give a candidate another state, and say why. Raises NotFound, Conflict for one that is released."""
        with self._repository.locked() as lock, Reader(self._repository) as reader:
            found = self._find(reader, scenario, id, self._tip(reader, scenario))
            if found.release.state is ReleaseState.RELEASED:
                raise Conflict(f"{found.release.id} is released", hint="reef releases rollback")
            assert found.release.job is not None
            writer = Writer(self._repository)
            told = replace(found, release=replace(found.release, state=state, note=note))
            made = commits.retold(writer, self._signer, reader, told)
            writer.settle()
            self._repository.move([Move(CANDIDATES + found.release.job, made.commit, found.commit)], lock)
            return made.release

    def rollback(self, scenario: str, to: str | None = None, reason: str = "", *, pin: bool = False) -> Release:
        """Release an earlier snapshot again; None: the one before the head, ``base``: nothing evolved. Clients that
        are held at a release, or will be (``pin``), are held at this one, in the same step.

        Raises NotFound, Conflict when there is nothing to go back from.
        """
        with self._repository.locked() as lock, Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            if tip.head is None:
                raise NotFound(f"{scenario!r} has no release to roll back", hint="reef releases list")
            to = to or tip.head.release.parent
            if to == tip.id:
                raise Conflict(f"{to} is the head already", hint="reef releases list")
            target = None if to == BASE_RELEASE else self._find(reader, scenario, to, tip)
            if target is not None and target.release.state is not ReleaseState.RELEASED:
                raise Conflict(f"{to} was never released", hint=f"reef releases approve {to}")
            restored = target.release if target else None
            release = Release(
                id=f"r{tip.number + 1}-{hashlib.sha256(f'{to} {time.time_ns()}'.encode()).hexdigest()[:8]}",
                scenario=scenario,
                number=0,
                kind=ReleaseKind.ROLLBACK,
                parent=tip.id,
                created_ns=0,
                reason=one_line(reason, LONGEST_REASON) or f"back to {to}",
                weights=restored.weights if restored else None,
                files=restored.files if restored else {},
                restores=to,
            )
            held = self._repository.ref(pin_of(scenario))
            pins = [pin_of(scenario)] if pin or held else []
            return self._extend(tip, release, target.blobs if target else {}, lock, beside=pins).release

    def pin(self, release: Release) -> None:
        """Hold the scenario's clients at a release of its chain. Raises Conflict for a candidate."""
        if release.state is not ReleaseState.RELEASED or release.commit is None:
            raise Conflict(f"{release.id} was never released", hint=f"reef releases approve {release.id}")
        name = pin_of(release.scenario)
        with self._repository.locked() as lock:
            self._repository.move([Move(name, release.commit, self._repository.ref(name) or NONE)], lock)

    def unpin(self, scenario: str) -> bool:
        """Let clients follow the head again; whether they were held."""
        name = pin_of(scenario)
        with self._repository.locked() as lock:
            if held := self._repository.ref(name):
                self._repository.move([Move(name, NONE, held)], lock)
        return held is not None

    # -- under the lock -----------------------------------------------------------------------------

    def _extend(
        self, tip: Tip, release: Release, blobs: Mapping[str, str], lock: int, *, beside: Sequence[str] = ()
    ) -> Snapshot:
        """Commit ``release`` on the head and move the ref there, and those ``beside``."""
        before = tip.head.release.created_ns if tip.head else 0
        linked = replace(
            release,
            number=tip.number + 1,
            parent=tip.id,
            created_ns=max(time.time_ns(), before + 1),
            state=ReleaseState.RELEASED,
            note="",
            head=True,
        )
        writer = Writer(self._repository)
        made = commits.make(writer, self._signer, linked, blobs, parent=tip.head.commit if tip.head else None)
        writer.settle()
        ref = ref_of(release.scenario)
        moves = [Move(ref, made.commit, tip.at or NONE), *self._without_candidate(release.job)]
        moves += [Move(name, made.commit, self._repository.ref(name) or NONE) for name in beside]
        if tip.at and (tip.head is None or tip.at != tip.head.commit):
            cut = f"{_CUT}{ref.removeprefix(HEADS)}/{tip.at[:12]}"
            if self._repository.ref(cut) is None:
                moves.append(Move(cut, tip.at, NONE))
        self._repository.move(moves, lock)
        self._repository.show_as_branch(ref)
        self._seen.note(made.release)
        return made

    def _without_candidate(self, job: str | None) -> list[Move]:
        """What takes a job's candidate away, where it has one."""
        left = self._repository.ref(CANDIDATES + job) if job else None
        return [Move(f"{CANDIDATES}{job}", NONE, left)] if left else []

    def _published(self, reader: Reader, scenario: str, job: str, tip: Tip) -> Snapshot | None:
        """The release of the chain that a job led to."""
        if tip.head is None:
            return None
        name = self._index.commit_of(scenario, tip.head.commit, job)
        return self._proved(reader, scenario, name) if name else None

    def _known(self, reader: Reader, candidate: Candidate) -> Release | None:
        if name := self._repository.ref(CANDIDATES + candidate.job):
            return commits.linked(reader, name, self._signer.public).release
        tip = self._tip(reader, candidate.scenario)
        done = self._published(reader, candidate.scenario, candidate.job, tip)
        return replace(done.release, head=done.release.id == tip.id) if done else None

    def _parent(self, reader: Reader, candidate: Candidate) -> Snapshot | None:
        if candidate.parent == BASE_RELEASE:
            return None
        tip = self._tip(reader, candidate.scenario)
        return self._find(reader, candidate.scenario, candidate.parent, tip)
