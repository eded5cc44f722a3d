"""File systems of their own, that can be full or read-only: permissions do not stop root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str, *, lazy: bool = False) -> Iterator[Path]:
    """``place``, new, of so many bytes (``8m``). At the end nobody may use it any more, unless ``lazy``. Skips the test
    where mounting is not allowed."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        place.rmdir()
        pytest.skip("mounting needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", *(["--lazy"] if lazy else []), str(place)], check=True)
        place.rmdir()


def make_read_only(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True, capture_output=True)
