"""Which repository a working directory is in, and at which commit, from Git's files alone: starting git costs what a
wrapper has to save.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

#: Characters; refs of a large repository, packed, are a few megabytes.
_MOST: Final = 16 << 20
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Place(NamedTuple):
    """``top`` of the working tree, its ``git`` directory, and what that shares with other worktrees (``common``)."""

    top: Path
    git: Path
    common: Path


def find(folder: Path) -> Place | None:
    """The repository that a folder is in; None where it is in none. Raises OSError, UnicodeDecodeError."""
    for top in (folder, *folder.parents):
        git = top / ".git"
        if git.is_file():  # a worktree or submodule (gitrepository-layout(5))
            git = top / _text(git).removeprefix("gitdir: ")
        elif not git.is_dir():
            continue
        common = git / "commondir"
        return Place(top, git, git / _text(common) if common.is_file() else git)
    return None


def commit_of(folder: Path) -> str | None:
    """The commit that HEAD names; None outside a repository, before the first commit, or where refs are kept otherwise
    than in files (reftable)."""
    try:
        place = find(folder)
        if place is None:
            return None
        head = _text(place.git / "HEAD")
        name = head.removeprefix("ref: ") if head.startswith("ref: ") else None
        found = head if name is None else _reference(place, name)
    except (OSError, UnicodeDecodeError):
        return None
    return found if found and _OBJECT.fullmatch(found) else None


def _text(path: Path) -> str:
    """Whoever made the folder made this, too: a FIFO would hold the start for ever."""
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST).strip()


def _reference(place: Place, name: str) -> str | None:
    for git in dict.fromkeys((place.git, place.common)):
        if (git / name).is_file():
            return _text(git / name)
    packed = place.common / "packed-refs"
    if packed.is_file():
        for line in _text(packed).splitlines():
            digest, _, known = line.partition(" ")
            if known == name:
                return digest
    return None
