"""What installing a coding agent means, as data. Three readings of it: `apply`, `script` and `receipt`.

A plan only describes: packages at pinned versions, files, a command. Nothing in it lies outside Reef's home but the one
link that a person may ask for: the user's agent directories, rc files and npm cache stay as they are (DESIGN §6).
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

_ASK_SECONDS: Final = 60.0

#: When a newer release is taken: at the next start, after a yes in the terminal, or by `reef harness update` alone.
Upgrade = Literal["auto", "ask", "pinned"]


class Package(NamedTuple):
    """An npm package at one version. ``installed_mb`` with all it depends on, measured; ``integrity`` of its archive as
    npm writes it: another file under this name and version is refused before it runs.
    """

    name: str
    version: str
    installed_mb: int
    integrity: str

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.version}"


class PlannedFile(NamedTuple):
    """A file that every install rewrites. ``path`` is below Reef's home, with ``/``."""

    path: str
    text: str
    mode: int = 0o600


class Node(NamedTuple):
    """A Node.js found on this machine, with the npm beside it."""

    path: Path
    version: tuple[int, ...]
    npm: Path


class Choice(NamedTuple):
    """What a person decides at installation. ``link``: also a link to the wrapper in ``~/.local/bin``."""

    scenario: str = "default"
    upgrade: Upgrade = "auto"
    link: bool = False


class InstallPlan(NamedTuple):
    """One agent below ``home / folder``. ``packages[0]`` is the agent; ``command`` runs it; ``wrapper`` is what a
    person calls, below ``home`` too. ``environment`` keeps its ``--version`` from touching anything.
    """

    adapter: str
    home: Path
    packages: tuple[Package, ...]
    files: tuple[PlannedFile, ...]
    command: tuple[str, ...]
    wrapper: str
    npm: Path
    environment: Mapping[str, str]
    link: bool = False

    @property
    def folder(self) -> str:
        return f"agents/{self.adapter}"

    @property
    def root(self) -> Path:
        return self.home / self.folder

    @property
    def version(self) -> str:
        return self.packages[0].version

    @property
    def installed_mb(self) -> int:
        return sum(package.installed_mb for package in self.packages)

    @property
    def specs(self) -> tuple[str, ...]:
        return tuple(package.spec for package in self.packages)

    @property
    def contents(self) -> tuple[str, ...]:
        """Everything that an install leaves, files and whole folders, below ``home``: what the receipt lists."""
        made = (f"{self.folder}/{name}" for name in ("node_modules", "package.json", "package-lock.json"))
        return (*made, *(file.path for file in self.files))

    @property
    def receipt(self) -> str:
        return f"{self.folder}/receipt"


def find_node() -> Node | None:
    """The Node.js and npm on PATH; None unless both are there and run."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    import subprocess  # not at import: the wrapper plans nothing

    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = re.match(r"v(\d+)\.(\d+)\.(\d+)", told.stdout)
    return Node(Path(node), tuple(map(int, numbers.groups())), Path(npm)) if numbers else None
