"""History and differences, through GitPython: what people look at, never what is served.

Each call opens the repository and closes it: GitPython keeps two `git` processes for every repository that it has read
from. Imported on first use, it takes an eighth of a second.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from daemon.core.errors import StoreError
from daemon.core.harness import ROUTING
from daemon.store.releases.git import environment

if TYPE_CHECKING:
    from git import Repo

_EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SHOWN: Final = ("harness", "weights", ROUTING)


@contextmanager
def _opened(path: Path) -> Iterator["Repo"]:
    from git import Repo
    from git.exc import GitError

    repo = Repo(path)
    try:
        repo.git.update_environment(**environment(path))
        yield repo
    except (GitError, ValueError) as error:  # ValueError: a name that means no object
        raise StoreError(f"git in {path}: {error}", hint="reef doctor") from error
    finally:
        repo.close()


def commits(path: Path, start: str, *, skip: int, count: int) -> list[str]:
    """Names of ``count`` commits, newest first, from ``start`` back along first parents."""
    with _opened(path) as repo:
        found = repo.iter_commits(start, first_parent=True, skip=skip, max_count=count)
        return [commit.hexsha for commit in islice(found, count)]


def diff(path: Path, old: str | None, new: str | None) -> str:
    """What people may want to read of the difference between two commits; None is the empty state."""
    with _opened(path) as repo:
        words = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=", "--dst-prefix=")
        sides = (old or _EMPTY_TREE, new or _EMPTY_TREE)
        return str(repo.git.diff(*words, *sides, "--", *_SHOWN, strip_newline_in_stdout=False))
