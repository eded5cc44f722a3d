"""What a run declares to the daemon with each request: its place, scenario and id, as headers or in an address.

A header has no way to carry a path but percent-encoded, and agents read ``$`` and ``!`` in theirs.
"""

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote

from adapters.checkout import commit_of


def headers(run: str, scenario: str, folder: Path, **more: str) -> dict[str, str]:
    """``more``: of ``x-reef-…`` headers, ``tag_release`` for ``x-reef-tag-release``."""
    commit = commit_of(folder)
    return {
        "x-reef-scenario": scenario,
        "x-reef-cwd": quote(os.fsencode(folder)),
        **({"x-reef-commit": commit} if commit else {}),
        "x-reef-tag-run": run,
        **{f"x-reef-{name.replace('_', '-')}": value for name, value in more.items()},
    }


def address(url: str, token: str, said: dict[str, str]) -> str:
    """The daemon's, for an agent that can set only a base URL (`daemon.server.address` reads it)."""
    fields = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"{url}/t/{token}/x/{fields}"
