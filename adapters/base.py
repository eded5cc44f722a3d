"""What installing a coding agent means, as data, and the one function that does it.

An adapter only describes: packages at pinned versions, files, a command, an environment. `apply` is the only code that
touches the disk, and it touches nothing outside the plan's own directory. The user's agent directories, rc files and
npm cache stay as they are: breaking that breaks the promise of DESIGN §6.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from daemon.core.errors import ReefError
from daemon.core.paths import private_directory, write_private

_INSTALL_SECONDS: Final = 900.0
_VERIFY_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Package:
    """An npm package at one version. ``installed_mb`` with all it depends on, measured."""

    name: str
    version: str
    installed_mb: int


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file of the agent's isolated configuration, rewritten on every apply."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """One agent, isolated below ``root``. ``packages[0]`` is the agent; ``command`` runs it under ``environment``."""

    agent: str
    root: Path
    packages: tuple[Package, ...]
    files: tuple[PlannedFile, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def version(self) -> str:
        return self.packages[0].version

    @property
    def installed_mb(self) -> int:
        return sum(package.installed_mb for package in self.packages)

    @property
    def receipt(self) -> Path:
        """What was installed, written once it has run."""
        return self.root / "installed.json"


@dataclass(frozen=True, slots=True)
class Node:
    """A Node.js found on this machine, with the npm beside it."""

    path: Path
    version: tuple[int, ...]
    npm: Path


def find_node() -> Node | None:
    """The Node.js and npm on PATH; None unless both are there and run."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=_VERIFY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = re.match(r"v(\d+)\.(\d+)\.(\d+)", told.stdout)
    return Node(Path(node), tuple(map(int, numbers.groups())), Path(npm)) if numbers else None


def is_installed(plan: InstallPlan) -> bool:
    """Whether exactly these packages were installed here and have run."""
    try:
        found: object = json.loads(plan.receipt.read_bytes())
    except (OSError, ValueError):
        return False
    return found == _receipt(plan)


def apply(plan: InstallPlan, node: Node, say: Callable[[str], None]) -> None:
    """Install what is missing and write the configuration. Raises ReefError with npm's words when it fails."""
    private_directory(plan.root)
    for file in plan.files:
        private_directory(file.path.parent)
        write_private(file.path, file.text.encode())
    if is_installed(plan):
        return
    plan.receipt.unlink(missing_ok=True)
    _npm(plan, node, say)
    version = _running_version(plan)
    if version != plan.version:
        raise ReefError(
            f"{plan.agent} {plan.version} was asked for, {version!r} answers", hint=f"rm -r {plan.root}, then try again"
        )
    write_private(plan.receipt, json.dumps(_receipt(plan)).encode())
    say(f"{plan.agent} {version} is installed in {plan.root}")


def environment(plan: InstallPlan) -> dict[str, str]:
    """The whole environment to run the agent under: this process's, and the plan's over it."""
    return {**os.environ, **plan.environment}


def _receipt(plan: InstallPlan) -> object:
    return {"agent": plan.agent, "packages": [asdict(package) for package in plan.packages]}


def _npm(plan: InstallPlan, node: Node, say: Callable[[str], None]) -> None:
    names = [f"{package.name}@{package.version}" for package in plan.packages]
    say(f"installing {' and '.join(names)}, {plan.installed_mb} MB on disk, into {plan.root}")
    private = plan.root / "npm-home"  # npm writes caches and logs: not into the user's home
    private_directory(private)
    command = [
        str(node.npm), "install", "--prefix", str(plan.root),
        # Versions are pinned: without one npm takes the newest that fits the node it runs on, silently.
        # Nothing here needs install scripts, so none runs.
        "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", *names,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            cwd=plan.root,
            env=_npm_environment(private),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ReefError(f"npm has not finished after {_INSTALL_SECONDS:.0f} s", hint="npm ping") from error
    finally:
        shutil.rmtree(private, ignore_errors=True)
    if done.returncode != 0:
        words = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise ReefError(f"npm failed ({done.returncode}):\n{words}", hint="npm ping")


def _npm_environment(private: Path) -> dict[str, str]:
    env = {**os.environ, "HOME": str(private)}
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        env[f"XDG_{name}_HOME"] = str(private / name.lower())
    env["npm_config_cache"] = str(private / "cache")
    # Registry, proxy and certificates are the user's choice; npm only reads this file.
    own = Path.home() / ".npmrc"
    if own.exists() and "NPM_CONFIG_USERCONFIG" not in env and "npm_config_userconfig" not in env:
        env["npm_config_userconfig"] = str(own)
    return env


def _running_version(plan: InstallPlan) -> str:
    try:
        done = subprocess.run(
            [*plan.command, "--version"],
            env=environment(plan),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERIFY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ReefError(f"{plan.agent} does not run: {error}", hint=f"rm -r {plan.root}, then try again") from error
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1] if done.stdout or done.stderr else ""
