"""The real model that tests run on: ``python -m tests.default_model`` fetches it once for every clone of this user."""

import asyncio
import os
import sys
from pathlib import Path

from daemon.core.paths import Home
from daemon.engines.models import Models


def home() -> Home:
    """Where it is kept: a home of its own in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Home(cache / "reef" / "check" / "home")


def cached() -> Path | None:
    """The file, or None when it was not fetched yet."""
    named = os.environ.get("REEF_TEST_MODEL")
    if named:
        return Path(named)
    return next((model.path for model in Models(home()).list() if model.source == "default"), None)


def fetch() -> Path:
    return asyncio.run(Models(home()).add("default")).path


if __name__ == "__main__":
    print(cached() or fetch(), file=sys.stderr)
