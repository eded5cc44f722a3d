"""Stand-ins for `systemctl --user`, `loginctl` and `launchctl`, for machines where no session of theirs runs.

They keep what they were told in a folder, refuse what the originals refuse in the same words, and really start and stop
what a unit or an agent names: ``python managers.py NAME STATE ARGUMENT…`` is what the commands made by `put` run.
"""

import json
import os
import plistlib
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def put(folder: Path, state: Path, *names: str) -> None:
    """Commands of these names in ``folder``."""
    folder.mkdir(exist_ok=True)
    state.mkdir(exist_ok=True)
    for name in names:
        command = folder / name
        words = (sys.executable, str(Path(__file__)), name, str(state))
        command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        command.chmod(0o755)


def calls(state: Path) -> list[str]:
    log = state / "calls"
    return log.read_text().splitlines() if log.exists() else []


def _fail(words: str, code: int = 1) -> None:
    print(words, file=sys.stderr)
    sys.exit(code)


def _spawn(state: Path, name: str, command: list[str], environment: dict[str, str]) -> None:
    child = subprocess.Popen(
        command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    (state / f"{name}.pid").write_text(str(child.pid))


def _stop(state: Path, name: str) -> bool:
    file = state / f"{name}.pid"
    if not file.exists():
        return False
    pid = int(file.read_text())
    file.unlink()
    try:
        os.kill(pid, signal.SIGTERM)
        while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
            time.sleep(0.01)
    except (ProcessLookupError, FileNotFoundError):
        pass
    return True


def _systemctl(state: Path, words: list[str]) -> None:
    assert words.pop(0) == "--user", "never the system's own"
    if "XDG_RUNTIME_DIR" not in os.environ:
        _fail("Failed to connect to bus: No medium found")
    units = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    verb, name = words[0], words[-1]
    unit, wanted, loaded = units / name, units / "default.target.wants" / name, state / "loaded.json"
    if verb == "daemon-reload":
        loaded.write_text(json.dumps({path.name: path.read_text() for path in units.glob("*.service")}))
    elif verb == "enable":
        if not unit.exists():
            _fail(f"Failed to enable unit: Unit file {name} does not exist.")
        wanted.parent.mkdir(exist_ok=True)
        wanted.unlink(missing_ok=True)
        wanted.symlink_to(unit)
    elif verb == "start":
        known: dict[str, str] = json.loads(loaded.read_text()) if loaded.exists() else {}
        if name not in known:
            _fail(f"Failed to start {name}: Unit {name} not found.", 5)
        _start_unit(state, name, known[name])
    elif verb == "disable":
        wanted.unlink(missing_ok=True)
        if "--now" in words:
            _stop(state, name)
    else:
        _fail(f"Unknown command verb {verb}.")


def _start_unit(state: Path, name: str, text: str) -> None:
    fields: list[tuple[str, str]] = [
        (key, value) for key, found, value in (line.partition("=") for line in text.splitlines()) if found
    ]

    def plain(word: str) -> str:
        return word.replace("%%", "%")

    environment = {"HOME": os.environ["HOME"]}
    for key, value in fields:
        if key == "Environment":
            (pair,) = shlex.split(value)
            variable, _, content = plain(pair).partition("=")
            environment[variable] = content
    command = next(value for key, value in fields if key == "ExecStart")
    _spawn(state, name, [plain(word).replace("$$", "$") for word in shlex.split(command)], environment)


def _loginctl(state: Path, words: list[str]) -> None:
    print((state / "linger").read_text() if (state / "linger").exists() else "Linger=no")


def _launchctl(state: Path, words: list[str]) -> None:
    verb, target = words[0], words[1]
    assert target.startswith(f"gui/{os.getuid()}")
    label = target.rpartition("/")[2]
    if verb == "bootstrap":
        agent: dict[str, Any] = plistlib.loads(Path(words[2]).read_bytes())
        if (state / f"{agent['Label']}.pid").exists():
            _fail("Bootstrap failed: 5: Input/output error", 5)
        _spawn(
            state,
            agent["Label"],
            agent["ProgramArguments"],
            {**agent["EnvironmentVariables"], "HOME": os.environ["HOME"]},
        )
    elif verb == "bootout":
        if not _stop(state, label):
            _fail("Boot-out failed: 3: No such process", 3)
    elif verb != "enable":
        _fail(f"Unrecognized subcommand: {verb}", 64)


if __name__ == "__main__":
    _place = Path(sys.argv[2])
    with (_place / "calls").open("a") as _log:
        _log.write(" ".join([sys.argv[1], *sys.argv[3:]]) + "\n")
    {"systemctl": _systemctl, "loginctl": _loginctl, "launchctl": _launchctl}[sys.argv[1]](_place, sys.argv[3:])
