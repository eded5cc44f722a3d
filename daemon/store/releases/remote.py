"""Pushing chains to a Git remote of the person's: a folder, or an address that git knows.

Each scenario's releases become a branch there, only ever forward; candidates stay here. Weights go first, so that no
release is there without them: into a folder as git-lfs' standalone transfer has them, elsewhere by git-lfs itself.
Credentials are git's own: of a person's configuration only ``credential.*`` is read, and nothing asks for a password.
"""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from daemon.core.errors import Conflict, StoreError, UsageError
from daemon.store.releases import lfs
from daemon.store.releases.gc import Sweeping
from daemon.store.releases.links import HEADS
from daemon.store.releases.objects import Reader

_PATIENCE_SECONDS: Final = 3600.0
_LFS: Final = "https://git-lfs.com, or: apt install git-lfs, brew install git-lfs; a folder as the remote needs none"


@dataclass(frozen=True, slots=True)
class Pushed:
    """``scenarios`` whose chain is there now; how many large files were brought there."""

    remote: str
    scenarios: tuple[str, ...]
    large_files: int


class Pushing(Sweeping):
    """`Chain` with a way to elsewhere. Blocking: call it off the event loop."""

    def push(self, remote: str) -> Pushed:
        """Bring every scenario's releases and weights there. Raises UsageError for what is no remote, Conflict where a
        branch there has gone another way, StoreError with git's words.
        """
        check_remote(remote)
        folder = _folder(remote)
        refs = self._repository.refs(HEADS)
        if not refs:
            return Pushed(remote, (), 0)
        with Reader(self._repository) as reader:
            pointers = self._large(reader, sorted(refs.values()))
        settings = _settings()
        large = self._copy(pointers, folder) if folder else self._upload(pointers, remote, settings)
        moves = [f"{ref}:refs/heads/{ref.removeprefix(HEADS)}" for ref in sorted(refs)]
        words = ("push", "--quiet", "--porcelain", "--", str(folder or remote), *moves)
        try:
            self._repository.run(*words, seconds=_PATIENCE_SECONDS, beside=settings)
        except StoreError as error:
            if "failed to push some refs" not in error.message:
                raise
            raise Conflict(
                f"{remote} has releases that are not from here: nothing there was overwritten",
                hint="push to an empty repository of its own",
            ) from error
        return Pushed(remote, tuple(unquote(ref.removeprefix(HEADS)) for ref in sorted(refs)), large)

    def _large(self, reader: Reader, tips: list[str]) -> list[lfs.Pointer]:
        """The large files of all releases."""
        told = self._repository.run("rev-list", "--objects", *tips).decode("utf-8", "replace")
        pairs = (line.partition(" ") for line in told.splitlines())
        blobs = {name for name, _, path in pairs if lfs.is_large(path)}
        found = (lfs.parse(reader.get(name, "blob")) for name in sorted(blobs))
        return [pointer for pointer in found if pointer is not None]

    def _copy(self, pointers: list[lfs.Pointer], folder: Path) -> int:
        """As git-lfs' standalone transfer does."""
        there = lfs.Objects(folder)
        missing = [pointer for pointer in pointers if not there.path(pointer.oid).exists()]
        for pointer in missing:
            there.put(self._lfs.whole(pointer))
        return len(missing)

    def _upload(self, pointers: list[lfs.Pointer], remote: str, settings: Mapping[str, str]) -> int:
        if not pointers:
            return 0
        if shutil.which("git-lfs") is None:
            raise StoreError(f"the weights need git-lfs to get to {remote}", hint=_LFS)
        oids = "\n".join(pointer.oid for pointer in pointers).encode()
        words = ("lfs", "push", "--object-id", "--stdin", remote)
        self._repository.run(*words, data=oids, seconds=_PATIENCE_SECONDS, beside=settings)
        return len(pointers)


def check_remote(remote: str) -> None:
    """Raises UsageError for what git would take for an option or another program, or what holds a password."""
    parts = urlsplit(remote) if "://" in remote else None
    if not remote or remote.startswith("-") or "::" in remote or not remote.isprintable():
        raise UsageError(f"{remote[:80]!r} is no Git remote", hint="a folder, file://…, https://… or user@host:path")
    if parts is not None and parts.password is not None:
        raise UsageError("the remote's address holds a password", hint="leave it to git: git credential approve")


def _folder(remote: str) -> Path | None:
    """The repository that a remote on this machine is; None: it is elsewhere. Raises UsageError for a folder that is
    none.
    """
    if remote.startswith("file://"):
        path = Path(unquote(urlsplit(remote).path))
    else:
        path = Path(remote).expanduser()
        if not path.is_absolute():
            return None
    found = next((one for one in (path, path / ".git") if (one / "objects").is_dir()), None)
    if found is None:
        raise UsageError(f"{remote[:200]!r} is no Git repository", hint=f"git init --bare {remote[:200]}")
    return found


def _settings() -> dict[str, str]:
    """Of the person's Git configuration what says who they are to a server, as variables for one run of git."""
    told = subprocess.run(
        ["git", "config", "--global", "--null", "--get-regexp", r"^credential\."],
        capture_output=True, check=False, timeout=10,
    ).stdout.decode("utf-8", "replace")  # fmt: skip
    pairs = [entry.partition("\n")[::2] for entry in told.split("\0") if entry]
    found = {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", "GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found
