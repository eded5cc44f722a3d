"""The bare repository: one lock, refs moved by compare-and-swap, and the few `git` calls that this takes.

Every writer holds one lock (`Repository.locked`), and passes it on to the git it starts: a killed publisher's lock
then lives until its git has ended too. So under the lock any ``*.lock`` of a ref is stale, and is swept; without that a
publisher killed in the wrong moment would stop all others for good. Nothing here reads a person's Git configuration or
runs a hook.
"""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from daemon.core.errors import Conflict, StoreError
from daemon.core.paths import private_directory, write_private

NONE: Final = "0" * 40
_TIMEOUT: Final = 120.0
INSTALL: Final = "install git: releases are kept in a Git repository"
#: Loose objects from which on they are packed.
_MANY: Final = 4096


class Move(NamedTuple):
    """One ref's step in a transaction; `NONE` as ``new`` deletes, as ``old`` demands that there is none."""

    ref: str
    new: str
    old: str


def environment(path: Path) -> dict[str, str]:
    """What git runs under: no configuration, hooks, replacements or GIT_* of the person's or of a caller's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_DIR": str(path),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


class Repository:
    """One bare repository. Safe from any thread and any number of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path / "reef-publish.lock"
        self._moves = path / "reef-moves"

    @classmethod
    def open(cls, path: Path, allowed_signers: Path) -> "Repository":
        """Make it on first use, and bring its configuration back to what it must be. Raises StoreError."""
        self = cls(path)
        private_directory(path)
        wanted = _configuration(allowed_signers).encode()
        with self.locked():
            for name in ("objects/info", "objects/pack", "refs/heads"):
                (path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            # By hand: the daemon starts on machines without git too, it only cannot release there.
            for name, content in (("HEAD", b"ref: refs/heads/_\n"), ("config", wanted)):
                place = path / name
                if not place.exists() or place.read_bytes() != content:
                    write_private(place, content)
        return self

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the only lock there is; waits for it. Yields its descriptor."""
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise store_error(error, self._lock) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._sweep()
            self._finish(handle)
            yield handle
        finally:
            os.close(handle)  # not LOCK_UN: a git that outlives us keeps it

    def _sweep(self) -> None:
        """Remove what a killed git left: nobody else can be writing now."""
        for name in ("packed-refs.lock", "packed-refs.new", "HEAD.lock", "config.lock", "gc.pid", "gc.pid.lock"):
            with suppress(FileNotFoundError):
                (self.path / name).unlink()
        for folder, _, names in os.walk(self.path / "refs"):
            for name in names:
                if name.endswith(".lock"):
                    Path(folder, name).unlink(missing_ok=True)

    def run(self, *words: str, lock: int | None = None, seconds: float = _TIMEOUT) -> bytes:
        """Run git, at most so many ``seconds``; its stdout. Raises StoreError with git's own words."""
        done = self.attempt(words, lock=lock, seconds=seconds)
        if done.returncode != 0:
            raise StoreError(f"git {words[0]} in {self.path}: {words_of(done)}", hint="reef doctor")
        return done.stdout

    def attempt(
        self, words: Sequence[str], data: bytes = b"", *, lock: int | None = None, seconds: float = _TIMEOUT,
        beside: Mapping[str, str] | None = None,
    ) -> "subprocess.CompletedProcess[bytes]":  # fmt: skip
        """Run git, however it ends. ``beside``: variables for one that starts programs of its own, as a push does; they
        end with it when its time is over. Raises StoreError where git is missing or too slow.
        """
        try:
            process = subprocess.Popen(
                ["git", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.path,
                env={**environment(self.path), **(beside or {})},
                pass_fds=() if lock is None else (lock,),
                process_group=None if beside is None else 0,
            )
        except FileNotFoundError as error:
            raise StoreError("git is not installed", hint=INSTALL) from error
        with process:
            try:
                stdout, stderr = process.communicate(data, timeout=seconds)
            except BaseException as error:
                (os.kill if beside is None else os.killpg)(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise StoreError(f"git {words[0]} has not ended for {seconds:g} s", hint="reef doctor") from error
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def move(self, moves: Sequence[Move], lock: int) -> None:
        """Move refs, all or none. Raises Conflict when one of them is not at its ``old`` any more.

        Git moves several one after the other: what they are to be is written down first, for whoever comes next.
        """
        if len(moves) > 1:
            write_private(self._moves, json.dumps(moves).encode())
        done = self._update(moves, lock)
        if done.returncode < 0 and self._finish(lock):
            return
        self._moves.unlink(missing_ok=True)
        if done.returncode == 0:
            return
        said = done.stderr.decode("utf-8", "replace").strip()
        if "but expected" in said or "already exists" in said:
            raise Conflict(f"someone else moved the head: {said}", hint="reef releases list")
        raise StoreError(f"the head could not be moved: {words_of(done)}", hint="reef doctor")

    def _update(self, moves: Sequence[Move], lock: int) -> "subprocess.CompletedProcess[bytes]":
        lines = b"".join(f"update {move.ref}\0{move.new}\0{move.old}\0".encode() for move in moves)
        return self.attempt(("update-ref", "--stdin", "-z"), lines, lock=lock)

    def _finish(self, lock: int) -> bool:
        """Move the rest where a killed git had moved some of the refs; whether it had."""
        try:
            moves = [Move(*move) for move in json.loads(self._moves.read_bytes())]
        except (FileNotFoundError, ValueError):
            return False
        self._sweep()
        now = {move.ref: self.ref(move.ref) or NONE for move in moves}
        rest = [move for move in moves if now[move.ref] == move.old]
        begun = any(now[move.ref] == move.new for move in moves)
        if begun and rest and (done := self._update(rest, lock)).returncode:
            raise StoreError(f"a step that was cut off cannot be finished: {words_of(done)}", hint="reef doctor")
        self._moves.unlink()
        return begun

    def ref(self, name: str) -> str | None:
        """The commit a ref names. As git does, loose before packed: `gc` writes the packed one before it removes the
        loose one.
        """
        for path, pattern in ((name, r"([0-9a-f]{40})\n"), ("packed-refs", rf"^([0-9a-f]{{40}}) {re.escape(name)}\n")):
            try:
                text = (self.path / path).read_text("utf-8")
            except (FileNotFoundError, NotADirectoryError):
                continue
            if found := re.search(pattern, text, re.MULTILINE):
                return found[1]
        return None

    def refs(self, below: str) -> dict[str, str]:
        """Name → commit of all refs below a prefix such as ``refs/reef/``."""
        if not (self.path / below).is_dir() and not (self.path / "packed-refs").exists():
            return {}
        told = self.run("for-each-ref", "--format=%(refname) %(objectname)", below).decode()
        return dict(line.split(" ", 1) for line in told.splitlines())

    def show_as_branch(self, ref: str) -> None:
        """Let `git clone --branch` see a scenario's ref, as it sees only branches."""
        branch = f"refs/heads/{ref.rpartition('/')[2]}"
        if not (self.path / branch).exists():
            self.run("symbolic-ref", branch, ref)

    def is_full(self) -> bool:
        """Whether there are so many loose objects that packing them is worth it."""
        sample = self.path / "objects" / "17"  # names are hashes: one folder of 256 tells how full all are
        return sample.is_dir() and len(list(sample.iterdir())) * 256 >= _MANY


def _configuration(allowed_signers: Path) -> str:
    quoted = str(allowed_signers).replace("\\", "\\\\").replace('"', '\\"')
    return f"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tfsync = all
\tlogAllRefUpdates = false
\thooksPath = /dev/null
[gc]
\tauto = 0
[gpg]
\tformat = ssh
[gpg "ssh"]
\tallowedSignersFile = "{quoted}"
"""


def words_of(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Why git failed: the line of its own that says it."""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = next((line for line in said if line.startswith(("fatal:", "error:"))), said[-1] if said else "")
    code = done.returncode
    return why or (f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}")


def store_error(error: OSError, path: Path) -> StoreError:
    """A file system's refusal in a person's words."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return StoreError(
        f"cannot write {error.filename or path}: {error.strerror}",
        hint=f"free some space for {path}" if full else "reef doctor",
    )
