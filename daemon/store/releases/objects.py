"""Git's objects as bytes: written by ourselves, read through one `git cat-file`.

A publish writes four small objects; a `git` process for each would cost more than all else in it. An object gets its
name once it is whole and on disk, and `Writer.settle` makes the names durable. What is read here is bytes, nothing is
proved by its name: `daemon.store.releases.commits` proves.
"""

import hashlib
import os
import subprocess
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from daemon.core.errors import StoreError, Untrusted
from daemon.core.paths import sync_folder
from daemon.store.releases.git import INSTALL, Repository, environment, store_error

_FILE_MODE: Final = "100644"
_TREE_MODE: Final = "40000"
_TRIES: Final = 10
_DEEPEST: Final = 8  # a release has three levels


class Writer:
    """Puts objects into the repository; `settle` before a ref names one of them."""

    def __init__(self, repository: Repository) -> None:
        self._objects = repository.path / "objects"
        self._folders = {self._objects}

    def blob(self, content: bytes) -> str:
        return self._put("blob", content)

    def commit(self, content: bytes) -> str:
        return self._put("commit", content)

    def tree(self, files: Mapping[str, str]) -> str:
        """A tree, with the trees below it, of path → blob."""
        entries: dict[str, tuple[str, str]] = {}
        below: dict[str, dict[str, str]] = {}
        for path, blob in files.items():
            first, slash, rest = path.partition("/")
            if slash:
                below.setdefault(first, {})[rest] = blob
            else:
                entries[first] = (_FILE_MODE, blob)
        for name, inner in below.items():
            entries[name] = (_TREE_MODE, self.tree(inner))
        # Git sorts a folder as if its name ended with a slash.
        ordered = sorted(entries.items(), key=lambda item: item[0] + "/" * (item[1][0] == _TREE_MODE))
        raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(sha) for name, (mode, sha) in ordered)
        return self._put("tree", raw)

    def settle(self) -> None:
        """Make what was put durable: the files are, their names are not yet."""
        for folder in self._folders:
            with suppress(FileNotFoundError):  # all of it was packed meanwhile
                sync_folder(folder)

    def _put(self, kind: str, content: bytes) -> str:
        whole = f"{kind} {len(content)}\0".encode() + content
        name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        folder = self._objects / name[:2]
        path = folder / name[2:]
        self._folders.add(folder)
        with suppress(FileNotFoundError):
            os.utime(path)  # there already; young again, so that no `gc` thinks it is forgotten
            return name
        try:
            self._write(path, zlib.compress(whole, 1))
        except OSError as error:
            raise store_error(error, path) from error
        return name

    def _write(self, path: Path, data: bytes) -> None:
        for last in (*(False for _ in range(_TRIES)), True):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                write_new(path, data, path.parent / f"tmp_obj_{os.urandom(8).hex()}")
                return
            except FileNotFoundError:  # a `gc` beside us takes away folders that are empty
                if last:
                    raise


def write_new(path: Path, data: bytes, temporary: Path) -> None:
    """A read-only file under its final name once it is whole and on disk."""
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o444)
        with os.fdopen(handle, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Reader:
    """Objects by name, from one `git cat-file` that ends with the block."""

    def __init__(self, repository: Repository) -> None:
        self._path = repository.path
        self._running: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _process(self) -> "subprocess.Popen[bytes]":
        if self._running is None:
            self._running = self._started()
        return self._running

    def _started(self) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                ["git", "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._path,
                env=environment(self._path),
            )
        except FileNotFoundError as error:
            raise StoreError("git is not installed", hint=INSTALL) from error

    def _stop(self) -> None:
        process, self._running = self._running, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        process.wait()

    def get(self, name: str, kind: str) -> bytes:
        """An object's content. Raises Untrusted when it is missing, damaged or of another kind."""
        process = self._process()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
        head = process.stdout.readline().split()
        if len(head) == 3 and head[2].isdigit():
            size = int(head[2])
            content = process.stdout.read(size + 1)
            if len(content) == size + 1 and head[1] == kind.encode():
                return content[:-1]
        if len(head) != 2:  # not just "missing": at a damaged object git gives up
            self._stop()
        raise Untrusted(
            f"the release store lacks the {kind} {name[:12]}, or it is damaged", hint=f"git --git-dir {self._path} fsck"
        )

    def tree(self, name: str, depth: int = _DEEPEST) -> dict[str, str]:
        """Path → blob of a tree and those below it. Raises Untrusted for anything but plain files and folders."""
        found: dict[str, str] = {}
        names: set[str] = set()
        raw = self.get(name, "tree")
        at = 0
        while at < len(raw):
            end = raw.find(b"\0", at)
            mode, _, path = raw[at:end].decode("utf-8", "surrogateescape").partition(" ")
            sha = raw[end + 1 : end + 21].hex()
            at = end + 21
            if end < 0 or len(sha) != 40:
                raise Untrusted(f"the tree {name[:12]} is damaged")
            if path in names:
                raise Untrusted(f"the tree {name[:12]} has {path!r} twice")
            names.add(path)
            if mode == _TREE_MODE and depth:
                found.update((f"{path}/{inner}", blob) for inner, blob in self.tree(sha, depth - 1).items())
            elif mode == _FILE_MODE:
                found[path] = sha
            else:
                raise Untrusted(f"{path} is not a plain file (mode {mode})")
        return found
