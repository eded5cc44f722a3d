"""Whether a run's working tree differs from the commit that it declared: asked of git once a run, beside its requests.

The wrapper has no time for it, and a request waits for nothing here. The folder is named by whoever holds the agent's
token, perhaps an agent in a sandbox that wrote all there is in it. So git gets a directory of ours, in which nothing is
configured: no filter, hook, monitor or remote of theirs, which would run as us. Of theirs it reads the index, the
objects and the files. As for `git describe --dirty`, files that Git does not track do not count.
"""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from adapters import checkout
from daemon.server.identity import Identity
from daemon.store.releases.git import environment

#: Thousands of runs go by; those that last say nothing new.
_RUNS: Final = 512
#: Nobody starts more agents at once; whoever names a new run with each request gets no more of the disk.
_WAITING: Final = 32
#: A large repository on a disk that is slow, read for the first time.
_SECONDS: Final = 5.0
_OBJECT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_STATUS: Final = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
_SHA1: Final = 40
_SHA256: Final = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectformat = sha256\n"


class Checkout:
    """A run's working tree. ``dirty`` is None until it is known, for ever where it cannot be told."""

    __slots__ = ("dirty",)

    def __init__(self, dirty: bool | None = None) -> None:
        self.dirty = dirty


UNKNOWN: Final = Checkout()


class Checkouts:
    """The working trees of the last runs. Used on the event loop alone."""

    def __init__(self) -> None:
        self._known: dict[str, Checkout] = {}
        self._looks: set[asyncio.Task[None]] = set()
        self._one = asyncio.Lock()

    def of(self, who: Identity) -> Checkout:
        """What is known of it; the first request of a run has it looked at. An agent's own word is taken."""
        run = who.tags.get("run")
        if who.dirty is not None:
            return Checkout(who.dirty)
        if run is None or who.cwd is None or who.commit is None:
            return UNKNOWN
        known = self._known.get(run)
        if known is None:
            if len(self._known) >= _RUNS:
                del self._known[next(iter(self._known))]
            known = self._known[run] = Checkout()
            if len(self._looks) < _WAITING:
                look = asyncio.create_task(self._look(known, who.cwd, who.commit))
                self._looks.add(look)
                look.add_done_callback(self._looks.discard)
        return known

    async def _look(self, known: Checkout, cwd: str, commit: str) -> None:
        async with self._one:  # one disk
            known.dirty = await asyncio.to_thread(dirty, Path(cwd), commit)


def dirty(folder: Path, commit: str, *, seconds: float = _SECONDS) -> bool | None:
    """Whether index or tracked files differ from ``commit``; None where git cannot say so in time. Blocking."""
    if not folder.is_absolute() or not _OBJECT.fullmatch(commit):
        return None
    try:
        place = checkout.find(folder)
        if place is None:
            return None
        with tempfile.TemporaryDirectory(prefix="reef-git-") as ours:
            git = Path(ours)
            (git / "refs").mkdir()
            (git / "HEAD").write_text(f"{commit}\n")
            (git / "config").write_text("" if len(commit) == _SHA1 else _SHA256)
            theirs = {
                "GIT_OBJECT_DIRECTORY": str(place.common / "objects"),
                "GIT_INDEX_FILE": str(place.git / "index"),
                "GIT_WORK_TREE": str(place.top),
                "GIT_OPTIONAL_LOCKS": "0",
            }
            done = subprocess.run(
                ["git", *_STATUS], cwd=place.top, env=environment(git) | theirs, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds, check=False,
            )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return bool(done.stdout) if done.returncode == 0 else None
