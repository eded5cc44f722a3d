"""Reading a working copy: plain files only, bounded, nothing followed that leads elsewhere.

An editor's own files are passed over without a word; whatever else has no place in a harness is told. A file that
cannot be read is never taken for one that was removed.
"""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from daemon.core import harness
from daemon.core.errors import RecipeError
from daemon.core.paths import NotPlain, open_plain
from daemon.store.releases import texts

#: What editors, file managers and version control leave beside a file that is being edited.
_PASSING: Final = re.compile(
    r".*~|#.*#|\.#.*|.*\.(?:sw[a-p]|tmp|bak|orig|rej|crswap)|4913|__pycache__|Thumbs\.db|\.DS_Store|\.git"
)
#: Agents have files of such names, Reef has none.
_EXTENSIONS: Final = "extensions/"
#: Larger than any file of a harness may be.
_LARGEST: Final = 300_000
#: Files that are looked at, and how deep folders are gone into.
_MOST: Final = 2000
_DEEPEST: Final = 8


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file is not taken. ``blocks``: nothing is proposed while it is so, since it may be what was meant."""

    path: str
    message: str
    blocks: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """What lies in a working copy: path → text of those that a harness may hold, and what is wrong with others.

    ``unread`` are paths of files that are there, but not in ``files``.
    """

    files: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    unread: frozenset[str] = frozenset()


def passing(path: str) -> bool:
    """Whether a file or folder at this path of a working copy is an editor's own affair."""
    name = path.rpartition("/")[2]
    hidden = name.startswith(".") and not path.startswith(_EXTENSIONS)
    return hidden or _PASSING.fullmatch(name) is not None


def look(root: Path, known: Collection[str] = ()) -> Seen:
    """Everything below ``root``. ``known`` files are the release's: whatever they are called, they count.

    Raises OSError when it cannot be listed.
    """
    files: dict[str, str] = {}
    problems: list[Problem] = []
    unread: set[str] = set()
    for count, name in enumerate(_below(root, "", known)):
        path = root / name
        if count >= _MOST:
            problems.append(Problem(name, f"more than {_MOST} files lie here; nothing after this one is looked at"))
            unread.update(one for one in known if one not in files)
            break
        if harness.entry(name) is None and (not path.is_symlink() or not name.isprintable()):
            shown = os.fsencode(name).decode("utf-8", "replace")  # any bytes may be a name
            problems.append(Problem(shown, f"a harness has no such file; it holds {harness.PLACES}", blocks=False))
            continue
        try:
            files[name] = _text(path)
            texts.check(name, files[name], person=True)
        except RecipeError as error:
            said = error.message.removeprefix(f"harness/{name}").lstrip(":, ")
            problems.append(Problem(name, " ".join(said.split())))
        except FileNotFoundError:
            files.pop(name, None)  # removed while it was looked at
        except (OSError, ValueError) as error:
            problems.append(Problem(name, _why(error)))
            unread.add(name)
    try:
        texts.check_tree(f"{harness.BELOW}{name}" for name in files)
    except RecipeError as error:
        place, _, message = error.message.partition(": ")
        problems.append(Problem(place.removeprefix(harness.BELOW), message or error.message))
    return Seen(files, tuple(problems), frozenset(unread))


def _below(root: Path, folder: str, known: Collection[str]) -> Iterator[str]:
    """Paths of files and links, by name. A folder's link is given as it is, not gone into."""
    for entry in sorted(os.scandir(root / folder), key=lambda entry: entry.name):
        path = f"{folder}{entry.name}"
        is_folder = entry.is_dir(follow_symlinks=False)
        if passing(path) and not any(one == path or one.startswith(f"{path}/") for one in known):
            continue
        if not is_folder:
            yield path
        elif path.count("/") < _DEEPEST:
            yield from _below(root, f"{path}/", known)


def _text(path: Path) -> str:
    with open_plain(path) as file:
        return file.read(_LARGEST).decode("utf-8")


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, NotPlain):
        return "a link or no plain file; copy the file itself here"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8 text"
    return f"it cannot be read: {error.strerror if isinstance(error, OSError) else error}"
