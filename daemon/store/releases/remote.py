"""Pushing chains to a Git remote of the person's: a folder, or an address that git knows.

Each scenario's releases become a branch there, all of them or none, only ever forward; candidates stay here. The remote
is asked first whether it would take them; then weights go, so that no release is there without them: into a folder as
git-lfs' standalone transfer has them, elsewhere by git-lfs itself. Credentials are git's own: of a person's
configuration only ``credential.*`` is read, and nothing asks for a password.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from daemon.core.errors import Conflict, ReefError, RemoteError, StoreError, UsageError
from daemon.store.releases import lfs
from daemon.store.releases.gc import Sweeping
from daemon.store.releases.git import words_of
from daemon.store.releases.links import HEADS
from daemon.store.releases.objects import Reader

_PATIENCE_SECONDS: Final = 3600.0
_LFS: Final = "https://git-lfs.com, or: apt install git-lfs, brew install git-lfs; a folder as the remote needs none"
_HELPER: Final = re.compile(r"[A-Za-z0-9+.-]*::")
#: What git and git-lfs say where they were let down, what that means, and what to do; the first that is found.
_REFUSALS: Final = tuple(
    (re.compile(pattern), why, hint)
    for pattern, why, hint in (
        (
            r"Authentication failed|could not read (?:Username|Password)|Permission denied|returned error: 40[13]"
            r"|[Aa]uthori[sz]ation error|[Aa]uthentication required",
            "it lets nobody in without a password, a token or a key that it knows",
            "git credential approve keeps a token, ssh-add a key: `git ls-remote {remote}` must ask nothing",
        ),
        (
            r"Host key verification failed",
            "ssh does not know that server's key",
            "`git ls-remote {remote}` once, by hand, shows the key and asks",
        ),
        (
            r"git-lfs-authenticate|git-lfs-transfer|Repository or object not found|batch response: Not found",
            "it keeps no large files, and the releases have weights",
            "a server with Git LFS, or a folder: that one needs nothing",
        ),
        (
            r"not found|does not (?:appear|exist)|returned error: 404",
            "there is no such repository",
            "make an empty one there first",
        ),
        (r"remote rejected|declined|returned error", "it turned the push down: {words}", "ask who keeps that server"),
    )
)


@dataclass(frozen=True, slots=True)
class Pushed:
    """``scenarios`` whose chain is there now; how many large files were brought there."""

    remote: str
    scenarios: tuple[str, ...]
    large_files: int


class Pushing(Sweeping):
    """`Chain` with a way to elsewhere. Blocking: call it off the event loop."""

    #: Seconds after which a server that says nothing counts as gone, or a program that git asks for a password.
    silence = 60.0

    def push(self, remote: str) -> Pushed:
        """Bring every scenario's releases and weights there. Raises UsageError for what is no remote, Conflict where a
        branch there has gone another way, RemoteError, StoreError; none of them has moved a branch there.
        """
        check_remote(remote)
        folder = _folder(remote)
        refs = self._repository.refs(HEADS)
        if not refs:
            return Pushed(remote, (), 0)
        with Reader(self._repository) as reader:
            pointers = self._large(reader, sorted(refs.values()))
        if pointers and folder is None and shutil.which("git-lfs") is None:
            raise StoreError(f"the weights need git-lfs to get to {remote}", hint=_LFS)
        moves = [f"{ref}:refs/heads/{ref.removeprefix(HEADS)}" for ref in sorted(refs)]
        words = ("--atomic", "--", str(folder or remote), *moves)
        settings = self._settings()
        self._talk(remote, ("push", "--dry-run", *words), settings, seconds=2 * self.silence)
        large = self._copy(pointers, folder) if folder else self._upload(pointers, remote, settings)
        self._talk(remote, ("push", *words), settings)
        return Pushed(remote, tuple(unquote(ref.removeprefix(HEADS)) for ref in sorted(refs)), large)

    def _talk(
        self, remote: str, words: tuple[str, ...], settings: Mapping[str, str], *, data: bytes = b"",
        seconds: float = _PATIENCE_SECONDS,
    ) -> None:  # fmt: skip
        try:
            done = self._repository.attempt(words, data, seconds=seconds, beside=settings)
        except StoreError as error:
            raise RemoteError(f"{remote}: {error.message}", hint=f"git ls-remote {remote}") from error
        if done.returncode != 0:
            raise _refusal(remote, words_of(done), (done.stderr + done.stdout).decode("utf-8", "replace"))

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
        oids = "\n".join(pointer.oid for pointer in pointers).encode()
        self._talk(remote, ("lfs", "push", "--object-id", "--stdin", remote), settings, data=oids)
        return len(pointers)

    def _settings(self) -> dict[str, str]:
        """For one run of git: who the person is to a server, by their own configuration, and how long to wait."""
        pairs = [pair for scope in ("--system", "--global") for pair in _credentials(scope)]
        found = {
            "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
            "GIT_ASKPASS": "",
            "GIT_SSH_COMMAND": f"ssh -o BatchMode=yes -o ConnectTimeout={self.silence:.0f} -o ServerAliveInterval=20",
            "GIT_HTTP_LOW_SPEED_LIMIT": "1",
            "GIT_HTTP_LOW_SPEED_TIME": f"{self.silence:.0f}",
            "GIT_CONFIG_COUNT": str(len(pairs)),
        }
        for number, (key, value) in enumerate(pairs):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return found


def _refusal(remote: str, words: str, said: str) -> ReefError:
    """What git said, in the class and the words that a person can act on."""
    if re.search(r"\[rejected\]|\(fetch first\)|\(non-fast-forward\)", said):
        return Conflict(
            f"{remote} has releases that are not from here: nothing there was overwritten",
            hint="push to an empty repository of its own",
        )
    for pattern, why, hint in _REFUSALS:
        if pattern.search(said):
            return RemoteError(f"{remote}: {why.format(words=words)}", hint=hint.format(remote=remote))
    return RemoteError(f"{remote} cannot be reached: {words}", hint=f"git ls-remote {remote}")


def check_remote(remote: str) -> None:
    """Raises UsageError for what git would take for an option or another program, or what holds a password."""
    address = _address(remote)
    if not remote or remote.startswith("-") or _HELPER.match(remote) or not remote.isprintable():
        raise UsageError(f"{remote[:80]!r} is no Git remote", hint="a folder, file://…, https://… or user@host:path")
    if address.password is not None or (address.scheme in ("http", "https") and (address.username or address.query)):
        raise UsageError(
            "the remote's address holds a name, a password or a token",
            hint="leave that to git: git credential approve; git config --global credential.https://HOST.username NAME",
        )


def _address(remote: str) -> SplitResult:
    with suppress(ValueError):  # brackets that hold no address: git's to refuse
        return urlsplit(remote if "://" in remote else "")
    return urlsplit("")


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


def _credentials(scope: str) -> list[tuple[str, str]]:
    told = subprocess.run(
        ["git", "config", scope, "--null", "--get-regexp", r"^credential\."],
        capture_output=True, check=False, timeout=10,
    ).stdout.decode("utf-8", "replace")  # fmt: skip
    entries = (entry.partition("\n") for entry in told.split("\0") if entry)
    return [(key, value) for key, _, value in entries]
