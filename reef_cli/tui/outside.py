"""Reading in a program of the person's own: the dashboard steps aside, and comes back when that ends.

What it reads stands in a file in a folder of its own that nobody else can enter, and that is removed afterwards.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from daemon.core.errors import ReefError, UsageError


def editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"


def pager() -> str:
    return os.environ.get("PAGER") or "less"


@contextmanager
def written(lines: Iterable[str], name: str) -> Iterator[Path]:
    """A file of these lines, 0600 in a folder that is 0700."""
    with tempfile.TemporaryDirectory(prefix="reef-") as folder:
        path = Path(folder) / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        yield path


def read(command: str, path: Path, aside: AbstractContextManager[None]) -> None:
    """Run the program on the file while the dashboard stands ``aside``. Raises ReefError."""
    failed: OSError | None = None
    try:
        words = [*shlex.split(command), str(path)]
    except ValueError as error:
        raise UsageError(f"{command!r} cannot be started: {error}", hint="set EDITOR and PAGER") from error
    with aside:  # nothing may be raised in here: the dashboard would not come back
        try:
            code = subprocess.run(words, check=False).returncode
        except OSError as error:
            failed = error
    if failed is not None:
        raise UsageError(f"{command!r} cannot be started: {failed}", hint="set EDITOR and PAGER") from failed
    if code != 0:
        raise ReefError(f"{command!r} ended with exit code {code}")
