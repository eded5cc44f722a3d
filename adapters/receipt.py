"""What was installed, to the byte: one line a file as ``sha256sum`` writes them, links and packages as comments.

``cd ~/.reef && sha256sum -c agents/pi/receipt`` checks it without Reef. Uninstalling goes by it alone: what a person
changed is not ours to delete, so it stays and is named.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from daemon.core.errors import NotFound
from daemon.core.paths import sha256_of, write_private

if TYPE_CHECKING:
    from adapters.plan import InstallPlan

_HEAD: Final = "# reef "
_PACKAGES: Final = "# packages "
_LINK: Final = "# link\t"
#: Files taken away at once. Some disks wait 2 ms for each: 19,000 one by one took 43 s (`rm -rf`), these 2 s.
_AT_ONCE: Final = 16


class Receipt(NamedTuple):
    """``files``: path → sha256, ``links``: path → target. Paths are below the home, or absolute for ~/.local/bin."""

    adapter: str
    packages: tuple[str, ...]
    links: dict[str, str]
    files: dict[str, str]


def text(plan: "InstallPlan", links: Iterable[tuple[str, str]]) -> str:
    """The receipt of what lies on disk now. ``links``: (path, target) outside the folder."""
    found = sorted(_below(plan.home, plan.contents), key=os.fsencode)
    inner = [(name, str((plan.home / name).readlink())) for name in found if (plan.home / name).is_symlink()]
    files = [name for name in found if not (plan.home / name).is_symlink()]
    return "".join(
        [
            f"{_HEAD}{plan.adapter} {plan.version}\n",
            f"{_PACKAGES}{' '.join(plan.specs)}\n",
            *(f"{_LINK}{target}\t{path}\n" for path, target in [*inner, *links]),
            *(f"{sha256_of(plan.home / name)}  {name}\n" for name in files),
        ]
    )


def write(plan: "InstallPlan", links: Iterable[tuple[str, str]]) -> None:
    write_private(plan.home / plan.receipt, os.fsencode(text(plan, links)))


def read(home: Path, adapter: str) -> Receipt | None:
    """The receipt of an adapter; None where nothing, or only a part, is installed."""
    try:
        lines = os.fsdecode((home / "agents" / adapter / "receipt").read_bytes()).removesuffix("\n").split("\n")
    except OSError:
        return None
    if len(lines) < 2 or not lines[0].startswith(_HEAD) or not lines[1].startswith(_PACKAGES):
        return None
    links: dict[str, str] = {}
    files: dict[str, str] = {}
    for line in lines[2:]:
        if line.startswith(_LINK):
            target, _, path = line.removeprefix(_LINK).partition("\t")
            if _is_ours(adapter, path) or (path.startswith("/") and Path(target).is_relative_to(home)):
                links[path] = target
        else:
            digest, _, path = line.partition("  ")
            if _is_ours(adapter, path):
                files[path] = digest
    return Receipt(adapter, tuple(lines[1].removeprefix(_PACKAGES).split()), links, files)


def _is_ours(adapter: str, path: str) -> bool:
    """Whatever somebody wrote into a receipt, nothing else is taken away."""
    return path.startswith((f"agents/{adapter}/", "bin/")) and ".." not in path.split("/")


def uninstall(home: Path, adapter: str) -> list[str]:
    """Remove what the receipt lists and is unchanged; the paths that were changed, and so were kept.

    Raises NotFound where there is no receipt.
    """
    receipt = read(home, adapter)
    if receipt is None:
        raise NotFound(f"{adapter} is not installed in {home}", hint=f"reef harness install --adapter {adapter}")
    folders: set[Path] = set()
    for name, target in receipt.links.items():
        path = home / name
        if path.is_symlink() and str(path.readlink()) == target:
            path.unlink()
            folders.add(path.parent)
    from concurrent.futures import ThreadPoolExecutor  # not at import: a wrapper reads no receipt

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        paths = [home / name for name in receipt.files]
        taken = list(pool.map(_taken, paths, receipt.files.values()))
        folders.update(path.parent for path, gone in zip(paths, taken, strict=True) if gone)
        for level in _levels(home, folders):
            list(pool.map(remove_empty, level))
    own = home / "agents" / adapter
    (own / "receipt").unlink()
    remove_empty(own)
    return [str(path) for path, gone in zip(paths, taken, strict=True) if gone is False]


def erase(folder: Path) -> None:
    """A folder of ours that nothing else vouches for, read-only releases in it included; of a link, the link."""
    if folder.is_symlink():
        folder.unlink()
        return
    for place, _, _ in os.walk(folder):
        Path(place).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _taken(path: Path, digest: str) -> bool | None:
    """Remove a file that is as it was installed. False: it was changed, or cannot be read, and stays; None: there is
    none."""
    if not path.is_file() or path.is_symlink():
        return None
    try:
        same = sha256_of(path) == digest
    except PermissionError:
        same = False
    if same:
        path.unlink()
    return same


def _levels(home: Path, folders: Iterable[Path]) -> list[list[Path]]:
    """These folders and those above them, the deepest first: none of Reef's own, nor anything outside them."""
    levels: dict[int, set[Path]] = {}
    for folder in folders:
        while folder not in (home, home / "agents") and folder.is_relative_to(home):
            level = levels.setdefault(len(folder.parts), set())
            if folder in level:
                break
            level.add(folder)
            folder = folder.parent
    return [sorted(levels[depth]) for depth in sorted(levels, reverse=True)]


def remove_empty(folder: Path) -> None:
    """Unless something is in it."""
    with suppress(OSError):
        folder.rmdir()


def _below(home: Path, contents: Iterable[str]) -> Iterator[str]:
    for name in contents:
        path = home / name
        if not path.is_dir() or path.is_symlink():
            if path.is_symlink() or path.exists():
                yield name
            continue
        for place, folders, files in os.walk(path):
            for entry in [*files, *(folder for folder in folders if (Path(place) / folder).is_symlink())]:
                yield str((Path(place) / entry).relative_to(home))
