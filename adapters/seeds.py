"""Harness trees to start from, in ``harness_templates/seeds/``: one folder each, said in ``index.json``.

Text only, so that a person may release one without reading a program. They are ours, as a person's own are theirs: what
is proposed from one is a proposal like any other.
"""

import json
from pathlib import Path
from typing import Final

from daemon.core import harness
from daemon.core.errors import NotFound

_ROOT: Final = Path(__file__).parents[1] / "harness_templates" / "seeds"


def names() -> dict[str, str]:
    """Name → what it is for."""
    told: dict[str, str] = json.loads((_ROOT / "index.json").read_text("utf-8"))
    return told


def files(name: str) -> dict[str, str]:
    """Path below ``harness/`` → text. Raises NotFound."""
    if name not in names():
        raise NotFound(f"no seed is called {name!r}", hint="reef harness seed lists them")
    folder = _ROOT / name
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.md"))}
    return {path: at.read_text("utf-8") for path, at in found.items() if harness.entry(path)}
