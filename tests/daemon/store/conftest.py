"""A real store in a private directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.store.db import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "reef.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Durability normal: these tests ask what is stored, not what a power cut leaves."""
    opened = Store.open(path, durability="normal")
    yield opened
    opened.close()
