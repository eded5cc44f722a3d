"""Working copies followed: a person's edits become a proposal that waits for them, a new head comes into the folder.

One look does it all, whatever made somebody look (a file that was saved, a release, a person who asks); twice the same
look is nothing new. Nothing is released here, and no edit is lost: what cannot be taken is told and stays.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, ReleaseState
from daemon.learning.publish import Desk
from daemon.server import edits
from daemon.store.working import copy, tree
from daemon.store.working.copy import State, WorkingCopy
from daemon.store.working.merge import merged
from daemon.store.working.tree import Problem

_log = logging.getLogger("reef.harness")

#: Notes of one working copy in `reef status` and the log.
_TOLD: Final = 4
#: Looks at a file that is being written to all the time, before it is taken as it is.
_PATIENCE: Final = 12


@dataclass(frozen=True, slots=True)
class Edited:
    path: str
    #: added, changed or removed
    how: str


@dataclass(frozen=True, slots=True)
class Looked:
    """A working copy as `reef harness status` tells it. ``conflicts``: path → the release that changed it, too."""

    scenario: str
    path: str
    base: str = BASE_RELEASE
    edits: tuple[Edited, ...] = ()
    problems: tuple[Problem, ...] = ()
    conflicts: Mapping[str, str] = field(default_factory=dict)
    proposal: str | None = None
    proposal_state: ReleaseState | None = None
    #: Why it cannot be followed at all.
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look at the disk brings: ``edits`` against the head, path → text, None where a file is gone."""

    state: State
    edits: Mapping[str, str | None]
    head: Mapping[str, str]
    problems: tuple[Problem, ...]
    files: Mapping[str, str]
    #: What the edits are recognised by.
    mark: str


class Working:
    """Belongs to the event loop; disk and Git are waited for off it. ``tell`` is told of every change that a watcher
    may want to show.
    """

    def __init__(self, home: Home, desk: Desk, tell: Callable[[dict[str, Any]], None]) -> None:
        self._home = home
        self._desk = desk
        self._tell = tell
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._looked: dict[str, Looked] = {}
        #: Set when there is a folder to watch that was not there before.
        self.made = asyncio.Event()
        #: Why nobody watches, while that is so.
        self.blind: str | None = None

    async def known(self) -> list[str]:
        return await asyncio.to_thread(copy.known, self._home)

    async def edit(self, scenario: str) -> Looked:
        """Make the working copy, unless it is there; anew where its folder is gone.

        Raises Untrusted, StoreError, ConfigError.
        """
        async with self._locks[scenario]:
            made = WorkingCopy(self._home, scenario)
            if not await asyncio.to_thread(made.exists):
                head = (await asyncio.to_thread(self._desk.releases.standing, scenario)).id
                await asyncio.to_thread(made.make, head, await asyncio.to_thread(self._files, scenario, head))
        self.made.set()
        return await self.look(scenario)

    async def look(self, scenario: str) -> Looked:
        """Follow what has changed on either side. Raises nothing: ``trouble`` says what went wrong."""
        async with self._locks[scenario]:
            made = WorkingCopy(self._home, scenario)
            if not await asyncio.to_thread(made.exists):  # a person removed the folder
                self._looked.pop(scenario, None)
                return Looked(scenario, str(made.root), trouble="the folder is gone")
            try:
                looked = await self._look(made)
            except ReefError as error:
                looked = Looked(scenario, str(made.root), trouble=error.message)
            except OSError as error:  # nobody may read it
                why = f"{error.strerror or error}: {error.filename or made.root}"
                looked = Looked(scenario, str(made.root), trouble=why)
            self._note(looked)
        return looked

    async def decide(self, scenario: str, paths: list[str], *, keep: bool) -> Looked:
        """``keep``: a person's text stays where a release changed the file, too. Else theirs goes, and the release's
        comes. No path: all of them. Raises NotFound, Conflict.
        """
        async with self._locks[scenario]:
            made = WorkingCopy(self._home, scenario)
            found = await asyncio.to_thread(self._found, made)
            there = found.state.conflicts if keep else {*found.edits, *(p.path for p in found.problems if p.blocks)}
            for path in paths:
                if path not in there:
                    what = "no conflict" if keep else "nothing of yours to give up"
                    raise Conflict(f"{path}: there is {what}", hint="reef harness status")
            chosen = paths or sorted(there)
            await asyncio.to_thread(_decided, made, found, chosen, keep)
        return await self.look(scenario)

    async def forget(self, scenario: str) -> None:
        """The scenario is no more. Raises Conflict while its working copy holds what was released nowhere."""
        made = WorkingCopy(self._home, scenario)
        async with self._locks[scenario]:
            if not await asyncio.to_thread(made.exists):
                return
            found = await asyncio.to_thread(self._found, made)
            if found.edits or found.problems:
                raise Conflict(
                    f"{made.root} holds what you changed and did not release",
                    hint=f"reef harness status --scenario {scenario}",
                )
            await asyncio.to_thread(made.remove)
            self._looked.pop(scenario, None)

    def notes(self) -> list[str]:
        """What a person should know, for `reef status`."""
        said = [note for looked in self._looked.values() for note in _said(looked)]
        return said + ([self.blind] if self.blind and self._looked else [])

    def bases(self) -> dict[str, str]:
        """Scenario → the release that its working copy was brought to."""
        return {scenario: looked.base for scenario, looked in self._looked.items() if looked.trouble is None}

    # -- one look -----------------------------------------------------------------------------------

    async def _look(self, made: WorkingCopy) -> Looked:
        for look in range(_PATIENCE):
            read = time.time()
            found = await asyncio.to_thread(self._found, made)
            # ext4 empties a file before it says when (its truncation may wait for the journal): look at one twice.
            emptied = look == 0 and found.mark != found.state.digest and "" in found.edits.values()
            if not emptied and not await asyncio.to_thread(made.being_saved, found.edits, read):
                break
            await asyncio.sleep(copy.QUIET_SECONDS)
        held = any(problem.blocks for problem in found.problems) or found.state.conflicts
        state = found.state
        proposed = await edits.known(self._desk, made.scenario, state.proposal)
        if not found.edits or (proposed is not None and proposed.parent != state.base):
            await edits.withdraw_others(self._desk, made.scenario, None)
            proposed = None
            if state.proposal or state.digest:
                state = await asyncio.to_thread(made.save, replace(state, proposal=None, digest=None))
        if found.edits and not held and found.mark != state.digest:
            proposed = await edits.propose(self._desk, made.scenario, state.base, found.edits)
            state = await asyncio.to_thread(made.save, replace(state, proposal=proposed.id, digest=found.mark))
            await edits.withdraw_others(self._desk, made.scenario, proposed.id)
        elif made.scenario not in self._looked:  # a daemon before may have been killed in between
            await edits.withdraw_others(self._desk, made.scenario, state.proposal)
        changed = tuple(Edited(path, _how(path, text, found.head)) for path, text in found.edits.items())
        return Looked(
            made.scenario, str(made.root), state.base, changed, found.problems, state.conflicts,
            proposed.id if proposed else None, proposed.state if proposed else None,
        )  # fmt: skip

    def _found(self, made: WorkingCopy) -> _Found:
        """Blocking. Brings the folder to the head first."""
        if not made.exists():
            raise NotFound(
                f"{made.scenario!r} has no working copy", hint=f"reef harness edit --scenario {made.scenario}"
            )
        if made.root.is_symlink():
            raise Conflict(f"{made.root} is no folder of its own; move away what lies there")
        state = made.state()
        problems = made.recover(state)
        head = self._desk.releases.standing(made.scenario).id
        for goal in dict.fromkeys([state.settling or state.base, head]):  # what was begun is finished first
            if state.settling or goal != state.base:
                state = self._settled(made, state, goal)
                problems += made.recover(state)
        theirs = self._files(made.scenario, head)
        seen = tree.look(made.root, theirs)
        mine = merged(theirs, seen.files, theirs, unread=seen.unread).edits
        left = {path: one for path, one in state.conflicts.items() if path in mine or path in seen.unread}
        if left != state.conflicts:
            state = made.save(replace(state, conflicts=left))
        return _Found(state, mine, theirs, (*problems, *seen.problems), seen.files, _mark(head, mine))

    def _settled(self, made: WorkingCopy, state: State, goal: str) -> State:
        """Blocking. The edits that were released are no edits any more, whatever came after them."""
        base = state.base
        if state.proposal is not None:
            with suppress(NotFound):
                proposed = self._desk.releases.get(made.scenario, state.proposal)
                base = proposed.id if proposed.state is ReleaseState.RELEASED else base
        before, theirs = self._files(made.scenario, base), self._files(made.scenario, goal)
        seen = tree.look(made.root, {*before, *theirs})
        merge = merged(before, seen.files, theirs, unread=seen.unread)
        return made.settle(state, goal, merge, seen.files)

    def _files(self, scenario: str, id: str) -> dict[str, str]:
        """A release's harness; of one that is gone with its chain, nothing is known. Blocking."""
        try:
            return {} if id == BASE_RELEASE else self._desk.releases.files(self._desk.releases.get(scenario, id))
        except NotFound:
            return {}

    def _note(self, looked: Looked) -> None:
        before = self._looked.get(looked.scenario)
        if looked == before:
            return
        self._looked[looked.scenario] = looked
        known = _said(before) if before else []
        for said in _said(looked):
            if said not in known:
                _log.warning("%s", said)
        self._tell(asdict(looked))


def _decided(made: WorkingCopy, found: _Found, paths: list[str], keep: bool) -> None:
    """Blocking."""
    if keep:
        left = {path: one for path, one in found.state.conflicts.items() if path not in paths}
        made.save(replace(found.state, conflicts=left))
        return
    made.give_up(found.state, found.head, found.files, paths)


def _said(looked: Looked) -> list[str]:
    if looked.trouble:
        return [f"the working copy of {looked.scenario} is not followed: {looked.trouble}"]
    only = "" if looked.scenario == "default" else f" --scenario {looked.scenario}"
    folder = Path(looked.path)
    said = [
        f"{folder / path}: you changed it and so did {release}: reef harness status{only}"
        for path, release in looked.conflicts.items()
    ]
    for problem in sorted(looked.problems, key=lambda problem: not problem.blocks):
        held = " (it stays, and nothing is proposed until it is right)" if problem.blocks else ""
        said.append(f"{folder / problem.path}: {problem.message}{held}")
    more = len(said) - _TOLD
    return said[:_TOLD] + ([f"{folder}: {more} more like it: reef harness status{only}"] if more > 0 else [])


def _how(path: str, text: str | None, head: Mapping[str, str]) -> str:
    if text is None:
        return "removed"
    return "changed" if path in head else "added"


def _mark(base: str, edits: Mapping[str, str | None]) -> str:
    return hashlib.sha256(json.dumps([base, edits], sort_keys=True).encode()).hexdigest()
