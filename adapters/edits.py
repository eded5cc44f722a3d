"""What a person changed of the files that Reef renders for an agent: kept in ``agents/NAME/edited``, and told of.

Such a change lasts no longer than its release or run; one that every run is to have belongs into the working copy
(`reef harness edit`). Nothing here is used again, and nothing of it is ever taken away but by ``--purge``.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from daemon.core.paths import private_directory, sha256_of

#: In a session's directory: path → digest of the files that were made for it alone.
_MADE: Final = ".made.json"


def keep(path: Path, place: Path) -> None:
    """Move a file or folder to ``place``, or to the next free name beside it."""
    number = 1
    target = place
    while target.exists():
        number += 1
        target = place.with_name(f"{place.name}-{number}")
    private_directory(target.parent)
    if path.is_dir():
        path.chmod(0o700)  # else it cannot be moved
    path.rename(target)


def kept(folder: Path) -> set[Path]:
    """All that was kept so far, a path for each run or release."""
    return set(folder.iterdir()) if folder.is_dir() else set()


def remember(directory: Path, names: Iterable[str]) -> None:
    """What was made for a session, before its agent or a person comes to it."""
    made = {name: _digest(directory / name) for name in names}
    (directory / _MADE).write_text(json.dumps(made))


def of_session(directory: Path, release: Path) -> list[Path]:
    """The files of a session that are no longer as they were made: another text, or no link to the release's any
    more. What lies beside them is the agent's."""
    made: dict[str, str] = {}
    with suppress(OSError, ValueError):
        made = json.loads((directory / _MADE).read_bytes())
    changed = [directory / name for name, digest in made.items() if _digest(directory / name) not in (digest, None)]
    for entry in release.iterdir() if release.is_dir() else ():
        mine = directory / entry.name
        if mine.is_symlink() or not mine.exists() or entry.name.startswith(".") or entry.name in made:
            continue
        inside = [mine / inner.name for inner in entry.iterdir()] if entry.is_dir() and mine.is_dir() else [mine]
        changed += [path for path in inside if path.exists() and not path.is_symlink()]
    return changed


def _digest(path: Path) -> str | None:
    try:
        return sha256_of(path)
    except OSError:
        return None
