"""Carry out a plan on this machine: npm, the files, the receipt. The only Python that writes an installation.

`script` is the same in sh: what one does the other must do, byte for byte (tests compare the trees).
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from adapters import receipt
from adapters.plan import InstallPlan
from daemon.core.errors import Conflict, NotFound, ReefError, Untrusted
from daemon.core.paths import private_directory, write_private

_INSTALL_SECONDS: Final = 900.0
_VERIFY_SECONDS: Final = 120.0

#: Versions are pinned: without one npm takes the newest that fits the node it runs on, silently. Nothing here needs
#: install scripts, so none runs.
NPM_FLAGS: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def is_installed(plan: InstallPlan) -> bool:
    """Whether exactly these packages were installed here and have run."""
    found = receipt.read(plan.home, plan.adapter)
    return found is not None and found.packages == plan.specs and Path(plan.command[-1]).is_file()


def apply(plan: InstallPlan, say: Callable[[str], None]) -> None:
    """Install what is missing, write the files and the receipt. Raises ReefError with npm's words when it fails,
    Conflict where the link's place is taken."""
    links = _links(plan)
    for folder in (plan.home, plan.root.parent, plan.root):
        private_directory(folder)
    if not is_installed(plan):
        (plan.home / plan.receipt).unlink(missing_ok=True)
        _packages(plan, say)
    for file in plan.files:
        path = plan.home / file.path
        private_directory(path.parent)
        write_private(path, file.text.encode())
        path.chmod(file.mode)
    for place, target in links:
        if not Path(place).is_symlink():
            Path(place).symlink_to(target)
    receipt.write(plan, links)
    _check(plan)
    say(f"{plan.adapter} {plan.version} is installed; run it: {links[0][0] if links else plan.home / plan.wrapper}")


def _check(plan: InstallPlan) -> None:
    """An agent that passes over its settings says nothing: so the wrapper looks whether a first request arrives."""
    try:
        done = subprocess.run(
            [str(plan.home / plan.wrapper)],
            env={**os.environ, "REEF_CHECK": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERIFY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ReefError(
            f"{plan.adapter} {plan.version} is in place, but has not ended after {_VERIFY_SECONDS:.0f} s",
            hint="reef status",
        ) from error
    if done.returncode != 0:
        raise ReefError(
            f"{plan.adapter} {plan.version} is in place, but no request of it reached Reef:\n{done.stderr.strip()}",
            hint="reef doctor",
        )


def _links(plan: InstallPlan) -> list[tuple[str, str]]:
    """(path, target) of the link that was asked for, now or by an install before."""
    if not plan.link:
        known = receipt.read(plan.home, plan.adapter)
        links = known.links.items() if known else ()
        return [(path, target) for path, target in links if Path(path).is_absolute() and Path(path).is_symlink()]
    folder = Path.home() / ".local" / "bin"
    path, target = folder / Path(plan.wrapper).name, plan.home / plan.wrapper
    if not folder.is_dir():
        raise NotFound(f"there is no {folder} for the link", hint=f"mkdir -p {folder}, and put it on PATH")
    if path.is_symlink() and path.readlink() == target:
        return [(str(path), str(target))]
    if path.is_symlink() or path.exists():
        raise Conflict(f"{path} exists and is not this Reef's", hint="move it away, or install without --link")
    return [(str(path), str(target))]


def _packages(plan: InstallPlan, say: Callable[[str], None]) -> None:
    say(f"installing {' and '.join(plan.specs)}, {plan.installed_mb} MB on disk, into {plan.root}")
    private = plan.root / "npm-home"  # npm writes caches and logs: not into the user's home
    private_directory(private)
    try:
        _npm(plan, private)
        _check_integrity(plan)
        version = _running_version(plan, private)
    finally:
        shutil.rmtree(private, ignore_errors=True)
    if version != plan.version:
        raise ReefError(
            f"{plan.adapter} {plan.version} was asked for, {version!r} answers",
            hint=f"rm -r {plan.root}/node_modules, then try again",
        )


def _npm(plan: InstallPlan, private: Path) -> None:
    command = [str(plan.npm), "install", "--prefix", str(plan.root), *NPM_FLAGS, *plan.specs]
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
            umask=0o077,
        )
    except subprocess.TimeoutExpired as error:
        raise ReefError(f"npm has not finished after {_INSTALL_SECONDS:.0f} s", hint="npm ping") from error
    if done.returncode != 0:
        words = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise ReefError(f"npm failed ({done.returncode}):\n{words}", hint="npm ping")


def _check_integrity(plan: InstallPlan) -> None:
    """Nothing of the packages has run yet."""
    modules = plan.root / "node_modules"
    lock = json.loads((modules / ".package-lock.json").read_bytes())["packages"]
    for package in plan.packages:
        found = lock.get(f"node_modules/{package.name}", {}).get("integrity")
        if found != package.integrity:
            shutil.rmtree(modules)
            raise Untrusted(
                f"npm brought another {package.spec} than the one that Reef knows: {found}",
                hint="npm config get registry",
            )


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


def _running_version(plan: InstallPlan, private: Path) -> str:
    try:
        done = subprocess.run(
            [*plan.command, "--version"],
            env={**os.environ, **plan.environment, "HOME": str(private)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERIFY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ReefError(f"{plan.adapter} does not run: {error}", hint=f"rm -r {plan.root}, then try again") from error
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1] if done.stdout or done.stderr else ""
