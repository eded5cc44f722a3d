"""Which commit a working directory is at, from Git's files alone: starting git costs what a wrapper has to save."""

import re
from pathlib import Path
from typing import Final

#: Characters; refs of a large repository, packed, are a few megabytes.
_MOST: Final = 16 << 20
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def commit_of(folder: Path) -> str | None:
    """The commit that HEAD names; None outside a repository, before the first commit, or where refs are kept otherwise
    than in files (reftable)."""
    try:
        git = _git_directory(folder)
        if git is None:
            return None
        head = _text(git / "HEAD")
        name = head.removeprefix("ref: ") if head.startswith("ref: ") else None
        found = head if name is None else _reference(git, name)
    except (OSError, UnicodeDecodeError):
        return None
    return found if found and _OBJECT.fullmatch(found) else None


def _text(path: Path) -> str:
    """Whoever made the folder made this, too: a FIFO would hold the start for ever."""
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST).strip()


def _git_directory(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            return git
        if git.is_file():  # a worktree or submodule (gitrepository-layout(5))
            return place / _text(git).removeprefix("gitdir: ")
    return None


def _reference(git: Path, name: str) -> str | None:
    common = git / "commondir"
    places = [git, git / _text(common)] if common.is_file() else [git]
    for place in places:
        if (place / name).is_file():
            return _text(place / name)
    packed = places[-1] / "packed-refs"
    if packed.is_file():
        for line in _text(packed).splitlines():
            digest, _, known = line.partition(" ")
            if known == name:
                return digest
    return None
