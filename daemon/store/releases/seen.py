"""The newest release that each scenario ever had, kept apart from the repository: a chain that got shorter is noticed.

Advisory: a file that is lost or cannot be read costs the warning, never a release.
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from daemon.core.paths import write_private
from daemon.core.releases import Release

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class Seen:
    """One small file. Changed only under the repository's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, tuple[int, str]]:
        """Scenario → number and commit."""
        try:
            told = json.loads(self._path.read_bytes())
            seen = {str(name): (int(number), str(commit)) for name, (number, commit) in told.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
        return {name: row for name, row in seen.items() if _COMMIT.fullmatch(row[1])}

    def forget(self, scenario: str) -> None:
        """Its chain ends here, and that is meant."""
        seen = self.all()
        if seen.pop(scenario, None) is not None:
            with suppress(OSError):
                write_private(self._path, json.dumps(seen).encode())

    def note(self, release: Release) -> None:
        assert release.commit is not None
        seen = self.all() | {release.scenario: (release.number, release.commit)}
        with suppress(OSError):  # the release is out already
            write_private(self._path, json.dumps(seen).encode())
