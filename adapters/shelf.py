"""Releases as an agent reads them: ``agents/<adapter>/releases/<id>-<digest>/``, written once, read-only.

The name's digest is of everything rendered, so a release under a newer template is another folder, and what a running
session reads never changes. `.release.json` inside is what the daemon delivered, for a start without it.
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from adapters import delivery, edits, receipt
from adapters.delivery import Delivery
from daemon.core.errors import Untrusted
from daemon.core.paths import private_directory

_DELIVERED: Final = ".release.json"
_KEPT: Final = 3
_OURS: Final = re.compile(r"\.new-.*|(?:base|r[0-9]+-[0-9a-f]{8})-[0-9a-f]{16}")


def put(shelf: Path, told: Delivery, files: Mapping[str, str]) -> Path:
    """The folder that holds exactly these files: the one there is, or a new one, made whole before it has its name.
    One that somebody changed is replaced, and kept (`adapters.edits`). Call it with the turn held."""
    whole, folder = _whole(told, files), named(shelf, told, files)
    if folder.is_dir():
        if _read(folder) == whole:
            os.utime(folder)  # used just now: `prune` goes by that
            return folder
        edits.keep(folder, shelf.with_name("edited") / folder.name)
    private_directory(shelf)
    made = shelf / f".new-{folder.name}"  # with the turn held, what has this name already is a start's that was killed
    if made.is_dir():
        receipt.erase(made)
    private_directory(made)
    for path, text in whole.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text, "utf-8", newline="")
        (made / path).chmod(0o400)
    made.rename(folder)
    for place, _, _ in os.walk(folder):
        Path(place).chmod(0o500)
    return folder


def named(shelf: Path, told: Delivery, files: Mapping[str, str]) -> Path:
    """Where `put` puts them."""
    return shelf / f"{told.release_id}-{_digest(_whole(told, files))}"


def find(shelf: Path, release_id: str, scenario: str) -> Delivery | None:
    """What was delivered of a release earlier; not yet checked again. None where it is not here."""
    for folder in sorted(shelf.glob(f"{release_id}-*"), key=_age):
        with suppress(OSError, ValueError, Untrusted):
            told = delivery.parse(json.loads((folder / _DELIVERED).read_bytes()))
            if told.scenario == scenario:
                return told
    return None


def prune(shelf: Path, used: Collection[str], ids: Collection[str] = (), *, spared: int = _KEPT) -> None:
    """Take away what no session reads: folders whose names are not in ``used`` nor their releases in ``ids``, but the
    newest of them, and what a start that was killed left half made. What somebody changed is kept."""
    if not shelf.is_dir():
        return
    ours = (entry for entry in shelf.iterdir() if _OURS.fullmatch(entry.name))
    spare = (entry for entry in ours if not (entry.name in used or entry.name.rpartition("-")[0] in ids))
    folders = sorted(spare, key=_age)
    cut = [entry for entry in folders if entry.name.startswith(".")]
    whole = [entry for entry in folders if not entry.name.startswith(".")]
    for folder in whole[spared:]:
        if _is_changed(folder):
            edits.keep(folder, shelf.with_name("edited") / folder.name)
    for folder in [*cut, *whole[spared:]]:
        receipt.erase(folder)


def changed(shelf: Path) -> set[Path]:
    """The releases that are no longer as they were put there. Call it with the turn held."""
    folders = shelf.glob("[!.]*") if shelf.is_dir() else ()
    return {folder for folder in folders if _OURS.fullmatch(folder.name) and _is_changed(folder)}


def _is_changed(folder: Path) -> bool:
    found = _read(folder)
    return found is None or folder.name.rpartition("-")[2] != _digest(found)


def _whole(told: Delivery, files: Mapping[str, str]) -> dict[str, str]:
    return {**files, _DELIVERED: told.dump()}


def _digest(whole: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def _age(folder: Path) -> int:
    return -folder.stat().st_mtime_ns


def _read(folder: Path) -> dict[str, str] | None:
    """Every file below; None when one is not readable text, or something else than a file or folder lies there."""
    found = {}
    for place, folders, files in os.walk(folder):
        if any((Path(place) / name).is_symlink() for name in [*folders, *files]):
            return None
        for name in files:
            path = Path(place) / name
            try:
                found[str(path.relative_to(folder))] = path.read_bytes().decode()
            except (OSError, UnicodeDecodeError):
                return None
    return found
