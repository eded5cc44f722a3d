"""Weights as Git LFS objects, written and read without git-lfs (git-lfs/docs/spec.md).

An object's name is its sha256. A file gets that name once it is whole, on disk and read-only: git-lfs hands objects out
as hard links, so a write in place anywhere would change it everywhere. What cannot be proved to be its object is
refused, a pointer in an object's place too.
"""

import hashlib
import os
import re
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from daemon.core.errors import BadWeights
from daemon.core.paths import NotPlain, open_plain, sync_folder
from daemon.store.releases.git import store_error

ATTRIBUTES: Final = b"".join(b"*.%s filter=lfs diff=lfs merge=lfs -text\n" % kind for kind in (b"gguf", b"safetensors"))
_SUFFIXES: Final = (".gguf", ".safetensors")
_MARK: Final = b"version https://git-lfs"
_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,18})\n"
)
_BLOCK: Final = 1 << 20
_ABANDONED_SECONDS: Final = 86_400


class Pointer(NamedTuple):
    """What stands in the tree for a large file: ``oid`` is the sha256 of ``size`` bytes."""

    oid: str
    size: int

    def dump(self) -> bytes:
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.oid}\nsize {self.size}\n".encode()


def parse(content: bytes) -> Pointer | None:
    """The pointer that a blob is; None when it is none."""
    found = _POINTER.fullmatch(content)
    return Pointer(found[1].decode(), int(found[2])) if found else None


def is_large(path: str) -> bool:
    """Whether a file of that name is an LFS object in a release."""
    return path.endswith(_SUFFIXES)


class Objects:
    """The ``lfs/`` folder of a repository."""

    def __init__(self, repository: Path) -> None:
        self._objects = repository / "lfs" / "objects"
        self._temporary = repository / "lfs" / "tmp"

    def path(self, oid: str) -> Path:
        return self._objects / oid[:2] / oid[2:4] / oid

    def put(self, source: Path) -> Pointer:
        """Copy a file in, hashing on the way. Raises BadWeights for a pointer or an empty file, StoreError when the
        disk is full.
        """
        try:
            return self._put(source)
        except FileNotFoundError as error:
            raise BadWeights(f"there are no weights at {source}") from error
        except NotPlain as error:
            raise BadWeights(f"{source} is no plain file") from error
        except OSError as error:
            raise store_error(error, self._objects) from error

    def _put(self, source: Path) -> Pointer:
        digest, size = hashlib.sha256(), 0
        with open_plain(source) as given:
            self._temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._temporary / os.urandom(8).hex()
            try:
                with temporary.open("xb", buffering=0) as file:
                    while block := given.read(_BLOCK):
                        if not size and block.startswith(_MARK):
                            raise BadWeights(f"{source} is a Git LFS pointer, not weights", hint="git lfs pull")
                        digest.update(block)
                        file.write(block)
                        size += len(block)
                    if not size:
                        raise BadWeights(f"{source} is empty")
                    os.fchmod(file.fileno(), 0o444)
                    os.fsync(file.fileno())
                final = self.path(digest.hexdigest())
                final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                temporary.replace(final)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        for folder in (final.parent, final.parent.parent, self._objects):
            sync_folder(folder)
        return Pointer(digest.hexdigest(), size)

    def whole(self, pointer: Pointer) -> Path:
        """The object's file, every byte checked. Raises BadWeights."""
        path = self.path(pointer.oid)
        digest, size = hashlib.sha256(), 0
        try:
            with path.open("rb", buffering=0) as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise BadWeights(f"the weights {pointer.oid[:12]} are not in the store: {error.strerror}") from error
        if size != pointer.size or digest.hexdigest() != pointer.oid:
            raise BadWeights(
                f"the weights {pointer.oid[:12]} are damaged: {size} bytes of {pointer.size}, or others than they were",
                hint="reef releases rollback",
            )
        return path

    def collect(self, wanted: Set[str], young_seconds: float) -> int:
        """Remove the objects that nobody wants and that are not young; how many that were."""
        gone = 0
        for path in self._objects.glob("??/??/*"):
            if path.name not in wanted and time.time() - path.stat().st_mtime > young_seconds:
                path.unlink()
                gone += 1
        return gone

    def sweep(self) -> None:
        """Remove what a killed copy left behind; one that goes on is younger than a day."""
        if not self._temporary.is_dir():
            return
        for left in self._temporary.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink()
