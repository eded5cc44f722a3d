"""Locks on files (flock(2)): held by an open file, gone with its process however that ends, never left behind.

A lock file is never deleted: who waits for the one that was deleted would hold another than who comes next.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold the lock of ``path``, made if need be; its descriptor. ``waiting`` is called where somebody else has it."""
    handle = open_lock(path)
    try:
        if not try_lock(handle):
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def open_lock(path: Path) -> int:
    """For `try_lock`."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(handle: int) -> bool:
    """Take the lock unless somebody else has it. Closing the descriptor gives it back."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Whether some process has the lock of ``path``. Raises OSError for a file that is there and cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY)  # enough for a lock, also on a file system that is read-only
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
