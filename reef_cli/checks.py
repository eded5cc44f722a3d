"""The checks of `reef doctor`, a function each: what is so, and the fix where it should not be so.

None starts or repairs anything; each works with the daemon down. ``told`` is the running daemon's status, or None.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from adapters import agent, receipt
from adapters.machine import find_node
from daemon.core import keys
from daemon.core.client import Client
from daemon.core.config import DEFAULT_PORT, Config, load
from daemon.core.discovery import port_holder
from daemon.core.errors import ConfigError, ReefError, Unreachable
from daemon.core.paths import Home
from reef_cli import lifecycle, output

_LOW_DISK = 2_000_000_000
_NO_DISK = 200_000_000
_CONNECT_SECONDS = 3.0
_IMPORT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """``fix`` is a command or a sentence; None when there is nothing to do."""

    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    fix: str | None = None


def everything(place: Home) -> Iterator[Check]:
    """All checks, in the order in which one trouble explains the next."""
    yield python()
    yield private_home(place)
    yield disk(place)
    told, running = daemon(place)
    config, check = configuration(place, told)
    yield check
    yield running
    yield port(config, told)
    yield engine()
    yield model(place, told)
    yield from remotes(place, config, told)
    yield from agents(place, told)
    yield git()
    yield node(place)
    yield path()


def python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok", f"{version} at {sys.executable}")


def private_home(place: Home) -> Check:
    if not place.root.exists():
        return Check("home", "warn", f"{place.root} is not there yet", "reef start")
    if not os.access(place.root, os.W_OK):
        return Check("home", "fail", f"{place.root} cannot be written", "make it writable, or set REEF_HOME")
    private = [
        place.root, place.run, place.agent_token.parent, place.agent_token, place.control_token, place.release_key,
        place.database,
    ]  # fmt: skip
    for item in private:
        if not item.exists():
            continue
        status = item.stat()
        if status.st_uid != os.getuid():
            fix = f"sudo chown -R {os.getuid()} {place.root}, or set REEF_HOME"
            return Check("home", "fail", f"{item} belongs to user {status.st_uid}", fix)
        if status.st_mode & 0o077:
            return Check("home", "fail", f"{item} can be read by others", f"chmod -R go= {place.root}")
    return Check("home", "ok", f"{place.root}, private")


def disk(place: Home) -> Check:
    there = next(folder for folder in (place.root, *place.root.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    detail = f"{output.size(free)} free at {there}"
    if free < _NO_DISK:
        return Check(
            "disk", "fail", detail, "free some space: exchanges are answered but no longer recorded when it is full"
        )
    return Check("disk", "warn" if free < _LOW_DISK else "ok", detail)


def configuration(place: Home, told: dict[str, Any] | None) -> tuple[Config, Check]:
    """The running daemon's file, which `reef serve -c` may have named, or the next one's."""
    file = place.config if told is None or not told["config_path"] else Path(told["config_path"])
    if not file.exists():
        return Config(), Check("config", "ok", "defaults; there is no file")
    try:
        return load(file), Check("config", "ok", str(file))
    except ConfigError as error:
        return Config(), Check("config", "fail", error.message, error.hint)


def daemon(place: Home) -> tuple[dict[str, Any] | None, Check]:
    try:
        told: dict[str, Any] = Client(place.socket, timeout=_CONNECT_SECONDS).get("/reef/status")
    except Unreachable as error:
        why = lifecycle.down(place)
        if lifecycle.lives(place):
            return None, Check("daemon", "fail", error.message, f"kill {why.pid}; then reef start")
        return None, Check("daemon", "warn", why.reason, "reef start")
    except ReefError as error:
        return None, Check("daemon", "fail", error.message, error.hint)
    detail = f"{told['version']}, pid {told['pid']}, up {output.duration(told['uptime_s'])}"
    if told["recording"]["state"] == "paused":
        return told, Check("daemon", "warn", f"{detail}; recording is paused", "reef resume")
    if told["recording"]["state"] != "on":
        return told, Check("daemon", "fail", f"{detail}; not recording: {told['recording']['detail']}", "reef logs")
    return told, Check("daemon", "ok", detail)


def port(config: Config, told: dict[str, Any] | None) -> Check:
    if told is not None:
        return Check("port", "ok", f"{told['port']}, agents use {told['url']}/v1")
    wanted = config.server.port or DEFAULT_PORT
    holder = port_holder(wanted)
    with socket.socket() as trial:
        taken = holder is not None or trial.connect_ex(("127.0.0.1", wanted)) == 0
    if not taken:
        return Check("port", "ok", f"{wanted} is free")
    detail = f"{wanted} is held by {holder or 'another user'}"
    if config.server.port:
        return Check("port", "fail", detail, "stop that program, or set another server.port")
    return Check("port", "warn", detail, "nothing: Reef takes the next free one, and reef env says which")


def engine() -> Check:
    code = "import llama_cpp; print(llama_cpp.__version__)"
    try:
        # In a process of its own: native code may crash where it does not fit the CPU.
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_IMPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Check("engine", "fail", f"llama-cpp-python has not loaded within {_IMPORT_SECONDS:.0f} s", "reef logs")
    fix = f"{sys.executable} -m daemon.engines.wheel"
    if done.returncode == 0:
        return Check("engine", "ok", f"llama-cpp-python {done.stdout.strip()}")
    if "ModuleNotFoundError" in done.stderr:
        return Check("engine", "warn", "llama-cpp-python is not installed: only remote engines can answer", fix)
    words = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
    return Check("engine", "fail", f"llama-cpp-python does not load: {words[0]}", fix)


def model(place: Home, told: dict[str, Any] | None) -> Check:
    if told is not None and told["model"]:
        return Check("model", "ok", str(told["model"]))
    if told is None and any(place.models.rglob("*.gguf")):
        return Check("model", "ok", f"there are models in {place.models}")
    return Check("model", "warn", "no model on this machine", "reef models add default")


def remotes(place: Home, config: Config, told: dict[str, Any] | None) -> Iterator[Check]:
    """The providers of the running daemon, or of the next one."""
    bases = {name: remote.base_url for name, remote in config.engines.items()}
    if told is not None:
        engines = Client(place.socket).get("/reef/config")["engines"]
        bases = {name: str(remote["base_url"]) for name, remote in engines.items()}
    for name, base_url in bases.items():
        url = urlsplit(base_url)
        number = url.port or (443 if url.scheme == "https" else 80)
        try:
            socket.create_connection((url.hostname or "", number), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            fix = f"check engines.{name}.base_url, the network and a proxy"
            yield Check(name, "fail", f"{base_url} does not answer: {error}", fix)
        else:
            yield Check(name, "ok", f"{base_url} answers")
    for name, remote in config.engines.items():
        if remote.key.startswith(("file:", "keyring:")):  # the daemon's own environment cannot be seen from here
            yield _key(name, remote.key)


def _key(engine: str, source: str) -> Check:
    try:
        keys.read(source)
    except ReefError as error:
        return Check(f"{engine} key", "fail", error.message, error.hint)
    return Check(f"{engine} key", "ok", source)


def agents(place: Home, told: dict[str, Any] | None) -> Iterator[Check]:
    """Whether what was pointed at Reef has really asked it: an agent whose settings are passed over says nothing."""
    if told is None:
        return
    asked: Counter[str] = Counter()
    for row in Client(place.socket).get("/reef/rollups", unit="day", by="agent")["items"]:
        asked[row["agent"] or "others"] += row["records"]
    whole, wrong = agent.found(place)
    for error in wrong:
        yield Check("agents", "fail", error.message, error.hint)
    mute = [one for one in whole if receipt.read(place.root, one.name) is not None and not asked[one.name]]
    silent = [one.name for one in mute]
    fix = "reef env AGENT says what an agent needs; ask it something, and look again"
    if silent:
        command = place.commands / mute[0].command
        fix = f"ask {silent[0]} something with {command}; if this stays, see: reef logs"
    if not asked and not told["counts"]["records"]:
        yield Check("agents", "ok", f"no request yet: {fix}")
    elif silent:
        yield Check("agents", "warn", f"{' and '.join(silent)} installed, but no request has come in 30 days", fix)
    elif not asked:
        yield Check("agents", "warn", "no request has come in 30 days", fix)
    else:
        yield Check("agents", "ok", f"requests in 30 days: {', '.join(f'{n} of {name}' for name, n in asked.items())}")


def git() -> Check:
    found = shutil.which("git")
    if found is None:
        return Check("git", "warn", "git is not installed: nothing can be released", "install git")
    return Check("git", "ok", found)


def node(place: Home) -> Check:
    found = find_node()
    if found is None:
        return Check(
            "node", "warn", "no Node.js with npm: coding agents from npm (Pi) cannot be installed", "install Node.js"
        )
    version = ".".join(map(str, found.version))
    pi = next((one for one in agent.found(place)[0] if one.name == "pi"), None)
    if pi is not None and pi.installs and found.version < pi.installs[0].node:
        return Check("node", "ok", f"{version}; Pi gets a newer one of its own")
    return Check("node", "ok", version)


def path() -> Check:
    found = shutil.which("reef")
    here = Path(sys.executable).parent
    if found is None:
        return Check("path", "warn", "the command reef is not on PATH", f'export PATH="{here}:$PATH"')
    return Check("path", "ok", found)
