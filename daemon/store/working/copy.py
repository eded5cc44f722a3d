"""One working copy on disk: made, brought to another release, put right after a kill.

A person may save a file at any moment, also at the one in which Reef replaces it. So nothing is written over: the old
file is moved aside, what was moved is compared with what was expected, and the new one gets the name only while nobody
else has it. What was moved aside goes at the next look, unless somebody wrote into it meanwhile.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from daemon.core.errors import StoreError
from daemon.core.paths import Home, open_plain, private_directory, write_private
from daemon.core.releases import BASE_RELEASE
from daemon.store.working.merge import Merge
from daemon.store.working.tree import Problem

#: Beside the copies, so that nothing of ours lies in a folder that a person edits.
_STATES: Final = ".reef"
_LARGEST: Final = 1_000_000
#: A file that nobody has written to for so long is whole.
QUIET_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class State:
    """``base`` is the release that the files were, ``settling`` the one they are being brought to.

    ``proposal`` is the candidate that the edits became, ``digest`` what was proposed in it. ``conflicts``: path → the
    release that changed a file which a person had changed as well; theirs lies there until they have decided.
    """

    scenario: str
    base: str = BASE_RELEASE
    settling: str | None = None
    proposal: str | None = None
    digest: str | None = None
    conflicts: Mapping[str, str] = field(default_factory=dict)


def digest(text: str | None) -> str:
    """What a file is recognised by; empty where there is none."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def known(home: Home) -> list[str]:
    """Scenarios that have a working copy: where a person removed the folder, there is none any more."""
    states = (home.harness / _STATES).glob("*/state.json")
    return sorted(unquote(path.parent.name) for path in states if (home.harness / path.parent.name).is_dir())


def place_of(home: Home, path: str) -> tuple[str | None, str]:
    """Whose working copy a path lies in, and where in it; None for what is Reef's own."""
    below = path.removeprefix(f"{home.harness}/")
    name, _, rest = below.partition("/")
    return (None if below == path or name == _STATES else unquote(name)), rest


class WorkingCopy:
    """Blocking: call it off the event loop, and one call at a time for a scenario."""

    def __init__(self, home: Home, scenario: str) -> None:
        name = quote(scenario, safe="")  # `work/api` must not lie inside `work`
        self.scenario = scenario
        self.root = home.harness / name
        self._place = home.harness / _STATES / name
        self._aside = self._place / "aside"

    def exists(self) -> bool:
        return self.root.is_dir() and (self._place / "state.json").exists()

    def state(self) -> State:
        """Raises StoreError for one that cannot be read: what a person changed could not be told from what they
        did not.
        """
        path = self._place / "state.json"
        try:
            told: dict[str, Any] = json.loads(path.read_bytes())
            state = State(**told)
            words = (state.scenario, state.base, *(told.get(name) or "" for name in ("settling", "proposal", "digest")))
            if not all(isinstance(one, str) for one in (*words, *state.conflicts.values())):
                raise TypeError("it holds something else than text")
            return state
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise StoreError(
                f"the working copy of {self.scenario!r} cannot be followed: {path}: {error}",
                hint=f"move {self.root} away, then: reef harness edit --scenario {self.scenario}",
            ) from error

    def save(self, state: State) -> State:
        write_private(self._place / "state.json", json.dumps(asdict(state), indent=1).encode())
        return state

    def make(self, base: str, files: Mapping[str, str]) -> State:
        """Lay a release's files down. What lies there already stays, and counts as edited where it is different."""
        for folder in (self.root.parent, self.root, self._place.parent, self._place, self._aside):
            private_directory(folder)
        for path, text in files.items():
            self._create(path, text)
        return self.save(State(self.scenario, base))

    def settle(self, state: State, head: str, merge: Merge, files: Mapping[str, str]) -> State:
        """Bring the files to release ``head``; ``files`` are what was read just now, before `merged`.

        Killed at any moment, the same call does the rest (`recover` first). What a person changes meanwhile stays.
        """
        state = self.save(replace(state, settling=head))
        late = [path for path, text in merge.take.items() if not self._put(path, text, files.get(path))]
        kept = {path: release for path, release in state.conflicts.items() if path in merge.edits}
        new = dict.fromkeys([*merge.conflicts, *late], head)
        return self.save(replace(state, base=head, settling=None, conflicts=kept | new))

    def give_up(self, state: State, release: Mapping[str, str], files: Mapping[str, str], paths: list[str]) -> State:
        """Take the release's text for these, and lose a person's; ``files`` are what was read just now."""
        state = self.save(replace(state, settling=state.base))
        for path in paths:
            if path not in files and self._is_ours(path):  # a link, a pipe
                with suppress(OSError):
                    (self.root / path).unlink()
            self._put(path, release.get(path), files.get(path))
        kept = {path: one for path, one in state.conflicts.items() if path not in paths}
        return self.save(replace(state, settling=None, conflicts=kept))

    def being_saved(self, paths: Iterable[str], read: float) -> bool:
        """Whether one of them was written so shortly before it was read (``read``: Unix seconds before any was), or
        since, that what was read may not be all of it: an editor empties a file first.
        """
        now = time.time()
        for path in paths:
            with suppress(OSError):
                if read - QUIET_SECONDS < (self.root / path).lstat().st_mtime <= now:
                    return True
        return False

    def remove(self) -> None:
        """The folder and all that is known of it."""
        (self._place / "state.json").unlink()
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self._place, ignore_errors=True)

    def recover(self, state: State) -> list[Problem]:
        """Put right what a kill left, and let go of what was moved aside. Whatever somebody wrote into it meanwhile
        comes back; told where it cannot, since there is a newer file of that name.
        """
        told: list[Problem] = []
        for aside in sorted(path for path in self._aside.rglob("*") if not path.is_dir() or path.is_symlink()):
            mark, _, path = aside.relative_to(self._aside).as_posix().partition("/")
            late = digest(_read(aside)) != mark
            if (late or state.settling) and self._restore(path, aside):
                continue
            if late:
                told.append(Problem(path, f"what was saved while a release came is kept in {aside}", blocks=False))
            else:
                aside.unlink()
        return told

    # -- one file -----------------------------------------------------------------------------------

    def _put(self, path: str, text: str | None, was: str | None) -> bool:
        target, aside = self.root / path, self._aside / digest(was) / path
        if not self._is_ours(path):
            return False
        if was is not None:
            aside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                target.rename(aside)
            except OSError:  # gone, or something else now
                return False
            if _read(aside) != was:
                self._restore(path, aside)
                return False
        if text is not None and not self._create(path, text):
            return False
        if text is None:
            self._prune(target.parent)
        return True

    def _create(self, path: str, text: str) -> bool:
        """False where a file of that name is there."""
        target, fresh = self.root / path, self._place / "fresh"
        if not self._is_ours(path):
            return False
        write_private(fresh, text.encode())
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.link(fresh, target)
        except (FileExistsError, NotADirectoryError):
            return False
        finally:
            fresh.unlink(missing_ok=True)
        return True

    def _restore(self, path: str, aside: Path) -> bool:
        target = self.root / path
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.link(aside, target, follow_symlinks=False)
        except OSError:
            return False
        aside.unlink()
        return True

    def _is_ours(self, path: str) -> bool:
        """Whether no folder above the file leads elsewhere."""
        folders = Path(path).parents
        return not any((self.root / folder).is_symlink() for folder in folders)

    def _prune(self, folder: Path) -> None:
        with suppress(OSError):  # not empty
            while folder != self.root:
                folder.rmdir()
                folder = folder.parent


def _read(path: Path) -> str | None:
    """None for what is no text of ours."""
    try:
        with open_plain(path) as file:
            return file.read(_LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
