"""Carry out a plan on this machine: npm, the files, the receipt. The only Python that writes an installation.

`script` is the same in sh: what one does the other must do, byte for byte (tests compare the trees).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from adapters import machine, receipt
from adapters.plan import InstallPlan
from daemon.core.errors import Conflict, NotFound, ReefError, Untrusted
from daemon.core.locks import locked
from daemon.core.paths import private_directory, write_private

_INSTALL_SECONDS: Final = 900.0
_VERIFY_SECONDS: Final = 180.0

#: Versions are pinned: without one npm takes the newest that fits the node it runs on, silently. No install script
#: runs: of an agent that is a native program the adapter names the machine's own package, where the program is whole.
NPM_FLAGS: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
#: Compiled files hold times: they would differ from one install to the next. Python makes them elsewhere, when it runs.
PIP_FLAGS: Final = ("--no-compile", "--disable-pip-version-check", "--no-input", "--quiet")
PIP: Final = (sys.executable, "-m", "pip", "--python")
#: Where a person's own configuration of pip may lie, as pip looks.
_PIP_FILES: Final = (".config/pip/pip.conf", ".pip/pip.conf")
_CONTROL: Final = re.compile(r"[\0-\x1f]")
PIP_CHECKED: Final = ("--no-deps", "--require-hashes")


def is_installed(plan: InstallPlan) -> bool:
    """Whether exactly these packages were installed here and have run."""
    found = receipt.read(plan.home, plan.adapter)
    return found is not None and found.packages == plan.specs and _runs(plan)


def _runs(plan: InstallPlan) -> bool:
    return all(Path(word).is_file() for word in plan.command if word.startswith("/"))


def apply(plan: InstallPlan, say: Callable[[str], None]) -> None:
    """Install what is missing, write the files and the receipt. Raises ReefError with npm's words when it fails,
    Conflict where the link's place is taken."""
    for folder in (plan.home, (plan.home / plan.lock).parent, plan.root.parent, plan.root):
        private_directory(folder)
    with locked(plan.home / plan.lock, lambda: say(f"{plan.adapter} is being installed already; waiting")) as lock:
        links = _links(plan)
        _apply(plan, links, say, lock)
    say(f"waiting for a first request of {plan.adapter} to reach Reef")
    _check(plan)
    say(f"{plan.adapter} {plan.version} is installed; run it: {links[0][0] if links else plan.home / plan.wrapper}")


def _apply(plan: InstallPlan, links: list[tuple[str, str]], say: Callable[[str], None], lock: int) -> None:
    """With the lock held: its descriptor."""
    private_directory(plan.root)  # an uninstall that was waited for took it away
    if not is_installed(plan):
        (plan.home / plan.receipt).unlink(missing_ok=True)
        _packages(plan, say, lock)
    for file in plan.files:
        path = plan.home / file.path
        private_directory(path.parent)
        write_private(path, file.text.encode())
        path.chmod(file.mode)
    for place, target in links:
        if not Path(place).is_symlink():
            Path(place).symlink_to(target)
    receipt.write(plan, links)


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
        said, _, hint = done.stderr.strip().partition("\n  hint: ")
        raise ReefError(
            f"{plan.adapter} {plan.version} is in place, but no request of it reached Reef:\n"
            f"{said.removeprefix('error: ')}",
            hint=hint or "reef doctor",
        )


def _links(plan: InstallPlan) -> list[tuple[str, str]]:
    """(path, target) of the link that was asked for, now or by an install before."""
    if not plan.link:
        known = receipt.read(plan.home, plan.adapter)
        links = known.links.items() if known else ()
        return [(path, target) for path, target in links if Path(path).is_absolute() and Path(path).is_symlink()]
    folder = Path.home() / ".local" / "bin"
    path, target = folder / Path(plan.wrapper).name, plan.home / plan.wrapper
    if _CONTROL.search(f"{path}{target}"):
        raise Conflict(f"{str(path)!r} or {str(target)!r} fits no line of a receipt", hint="install without --link")
    if not folder.is_dir():
        raise NotFound(f"there is no {folder} for the link", hint=f"mkdir -p {folder}, and put it on PATH")
    if path.is_symlink() and path.readlink() == target:
        return [(str(path), str(target))]
    if path.is_symlink() or path.exists():
        raise Conflict(f"{path} exists and is not this Reef's", hint="move it away, or install without --link")
    return [(str(path), str(target))]


def _packages(plan: InstallPlan, say: Callable[[str], None], lock: int) -> None:
    if not plan.packages:
        say(f"{plan.adapter} {plan.version} is there: {plan.command[0]}")
        return
    say(f"installing {' and '.join(plan.specs)}, {plan.installed_mb} MB on disk, into {plan.root}")
    private = plan.root / "private"  # npm and pip write caches and logs: not into the user's home
    private_directory(private)
    try:
        if plan.pip:
            _pip(plan, private, lock)
        else:
            _npm(plan, private, lock)
            _check_integrity(plan)
        if not _runs(plan):
            raise ReefError(f"{plan.specs[0]} has no {plan.command[-1]}", hint="reef harness install --help")
        said = machine.answer(list(plan.asks_version), {**plan.environment, "HOME": str(private)})
    finally:
        shutil.rmtree(private, ignore_errors=True)
    if said != plan.says_version:
        raise ReefError(
            f"{plan.adapter} {plan.version} was asked for, {said!r} answers",
            hint=f"rm -r {plan.root}/node_modules {plan.root}/venv",
        )


def _npm(plan: InstallPlan, private: Path, lock: int) -> None:
    prefix = plan.root.resolve()  # through a link npm takes its own folder for somebody else's, and tidies up in it
    command = [str(plan.installer), "install", "--prefix", str(prefix), *NPM_FLAGS, *plan.specs]
    _run("npm", command, lock, _npm_environment(private), hint="npm ping")


def _pip(plan: InstallPlan, private: Path, lock: int) -> None:
    """Into an environment without a pip of its own, with Reef's; the agent's own archive first, by its hash."""
    venv = plan.root / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    env = _environment(private)
    own = next((path for path in (Path.home() / name for name in _PIP_FILES) if path.exists()), None)
    if own is not None and "PIP_CONFIG_FILE" not in env:
        env["PIP_CONFIG_FILE"] = str(own)
    _run("python", [str(plan.installer), "-m", "venv", "--without-pip", str(venv)], lock, env, hint="reef doctor")
    (private / "checked.txt").write_text(requirements(plan))
    pip = [*PIP, str(venv / "bin" / "python"), "install", *PIP_FLAGS]
    checked = [*pip, *PIP_CHECKED, "--requirement", str(private / "checked.txt")]
    for command in (checked, [*pip, *plan.specs]):
        _run("pip", command, lock, env, hint="pip download --no-deps " + plan.specs[0])
    for place, _, _ in os.walk(venv, topdown=False):  # no receipt lists an empty folder
        with suppress(OSError):
            Path(place).rmdir()


def requirements(plan: InstallPlan) -> str:
    """The packages by their hashes, for pip."""
    return "".join(f"{one.spec} --hash={one.integrity}\n" for one in plan.packages)


def _run(what: str, command: list[str], lock: int, environment: dict[str, str], *, hint: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=Path(environment["HOME"]).parent,
            env=environment,
            pass_fds=(lock,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
            umask=0o077,
        )
    except subprocess.TimeoutExpired as error:
        raise ReefError(f"{what} has not finished after {_INSTALL_SECONDS:.0f} s", hint=hint) from error
    if done.returncode != 0:
        words = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise ReefError(f"{what} failed ({done.returncode}):\n{words}", hint=hint)


def _check_integrity(plan: InstallPlan) -> None:
    """Nothing of the packages has run yet."""
    modules = plan.root / "node_modules"
    lock = {}
    with suppress(OSError, ValueError):
        lock = json.loads((modules / ".package-lock.json").read_bytes())["packages"]
    for package in plan.packages:
        found = lock.get(f"node_modules/{package.name}", {}).get("integrity")
        if found != package.integrity:
            shutil.rmtree(modules, ignore_errors=True)
            raise Untrusted(
                f"npm brought another {package.spec} than the one that Reef knows: {found}",
                hint="npm config get registry",
            )


def _environment(private: Path) -> dict[str, str]:
    env = {**os.environ, "HOME": str(private)}
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        env[f"XDG_{name}_HOME"] = str(private / name.lower())
    return env


def _npm_environment(private: Path) -> dict[str, str]:
    env = {**_environment(private), "npm_config_cache": str(private / "cache")}
    # Registry, proxy and certificates are the user's choice; npm only reads this file.
    own = Path.home() / ".npmrc"
    if own.exists() and "NPM_CONFIG_USERCONFIG" not in env and "npm_config_userconfig" not in env:
        env["npm_config_userconfig"] = str(own)
    return env
