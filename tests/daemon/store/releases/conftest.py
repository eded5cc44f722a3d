"""A store of releases of its own, and plain git on it."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.store.releases import Releases

Git = Callable[..., str]


@pytest.fixture
def memory_home() -> Iterator[Home]:
    """Where fsync costs nothing: kill -9 loses no file that was written, and many releases take little time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="reef-", dir=memory if memory.is_dir() else None) as folder:
        home = Home(Path(folder))
        home.prepare()
        yield home


def git_of(home: Home) -> Git:
    """``git("log", "-1")`` as a person runs it on the store; its stdout. ``data`` goes in; fails on a failure."""

    def run(*words: str, data: bytes = b"") -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", "--git-dir", str(home.releases), *words],
            input=data, capture_output=True, env=environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    return run


@pytest.fixture
def releases(reef_home: Home) -> Releases:
    return Releases.open(reef_home)


@pytest.fixture
def git(reef_home: Home) -> Git:
    return git_of(reef_home)
