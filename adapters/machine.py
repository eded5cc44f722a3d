"""What this machine has for coding agents: its kind, its Node.js and Python, an agent that is installed already.

Nothing here changes anything, and nothing of it is asked by a wrapper: only by who installs.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from adapters import agent
from adapters.agent import Package

_ASK_SECONDS: Final = 60.0
#: Versions of Python after the oldest that an agent takes which are looked for.
_MINORS: Final = 8
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}
_NODES: Final = Path(__file__).parents[1] / "harness_templates" / "node.json"


class Node(NamedTuple):
    """A Node.js found on this machine, with the npm beside it."""

    path: Path
    version: tuple[int, ...]
    npm: Path


class Program(NamedTuple):
    """What runs an agent: ``words`` before any argument."""

    words: tuple[str, ...]
    version: str


def kind() -> str:
    """As adapters name machines: ``linux-x64``, ``darwin-arm64``."""
    import platform  # not at import: the wrapper installs nothing

    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def packaged_node() -> Package | None:
    """Node.js as a package of npm's, for a machine whose own is too old; None where there is none for it."""
    said = json.loads(_NODES.read_bytes()).get(kind())
    return agent.package(said) if said else None


def find_node() -> Node | None:
    """The Node.js and npm on PATH; None unless both are there and run."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    found = re.match(r"v(\d+\.\d+\.\d+)", answer([node, "--version"]))
    return Node(Path(node), agent.numbers(found[1]), Path(npm)) if found else None


def find_python(oldest: tuple[int, ...]) -> Path | None:
    """Reef's own Python where it is new enough, else the oldest on PATH that is; None where there is none."""
    if sys.version_info[:2] >= oldest:
        return Path(sys.executable)
    for minor in range(oldest[1], oldest[1] + _MINORS):
        found = shutil.which(f"python{oldest[0]}.{minor}")
        # A name on PATH may be a stub of a program that manages versions: it says where the real one is, if there is.
        where = answer([found, "-c", "import sys; print(sys.executable)"]) if found else ""
        if where:
            return Path(where)
    return None


def answer(words: list[str], environment: Mapping[str, str] | None = None) -> str:
    """The last line that a program says, on either side; nothing where it does not run or fails."""
    import subprocess

    try:
        told = subprocess.run(
            words,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASK_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    said = (told.stdout.strip() or told.stderr.strip()).splitlines()
    return said[-1] if said else ""
