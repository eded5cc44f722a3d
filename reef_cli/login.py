"""Starting with the person's session: a systemd user unit, on macOS a launch agent; and taking that away again.

What was written is in a receipt, and only that is removed: a file that somebody changed since stays, and is named. If
one step fails, all is as before. Nothing needs root.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from daemon.core.errors import Conflict, ExitCode, NotFound, ReefError
from daemon.core.paths import Home, write_private
from reef_cli.lifecycle import DAEMON

_SECONDS: Final = 30
#: What the daemon's tools (git, ssh-keygen, a recipe's) are found by.
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL")


class Receipt(NamedTuple):
    """What was written, and by which manager it is run."""

    manager: str
    path: Path
    sha256: str


class Manager(Protocol):
    """What starts programs at login. All but `file` raise ReefError with the manager's own words."""

    name: str

    def file(self, home: Home) -> tuple[Path, bytes]:
        """Where its file goes, and what it says."""
        ...

    def enable(self, path: Path) -> None: ...
    def start(self, path: Path) -> None: ...
    def disable(self, path: Path) -> None: ...
    def note(self) -> str | None:
        """What a person should know after it was set up."""
        ...


def here() -> Manager:
    """The manager of this machine. Raises NotFound."""
    if sys.platform == "darwin" and shutil.which("launchctl"):
        return Launchd()
    if shutil.which("systemctl"):
        return Systemd()
    raise NotFound(
        "nothing here starts programs at login: neither systemd nor launchd",
        hint="let your session run `reef start` in its own way",
    )


def install(home: Home, manager: Manager) -> bool:
    """Have the daemon started at login from now on; False where it was so already. Raises Conflict for a file of
    somebody else's, ReefError.
    """
    path, content = manager.file(home)
    before = path.read_bytes() if path.exists() else None
    receipt = _read(home)
    known = receipt is not None and receipt.path == path and before is not None and receipt.sha256 == _sha256(before)
    if before is not None and not known and before != content:
        raise Conflict(f"{path} is there and not Reef's, or was changed", hint=f"move {path} away, then the same again")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, content)
        manager.enable(path)
    except (OSError, ReefError) as error:
        _restore(path, before)
        if isinstance(error, ReefError):
            raise
        raise ReefError(f"cannot write {path}: {error.strerror or error}") from error
    _write(home, Receipt(manager.name, path, _sha256(content)))
    return before != content


def uninstall(home: Home) -> bool:
    """Take it away; False where it was not set up. Raises Conflict for a file that was changed, ReefError."""
    receipt = _read(home)
    if receipt is None:
        return False
    manager = _MANAGERS[receipt.manager]()
    if receipt.path.exists():
        if _sha256(receipt.path.read_bytes()) != receipt.sha256:
            raise Conflict(
                f"{receipt.path} was changed since Reef wrote it: it stays",
                hint=f"rm {receipt.path}, then the same again",
            )
        manager.disable(receipt.path)
        receipt.path.unlink()
    home.login.unlink(missing_ok=True)
    return True


def _read(home: Home) -> Receipt | None:
    try:
        told = json.loads(home.login.read_bytes())
        if told["manager"] not in _MANAGERS:
            raise ValueError(told["manager"])
        return Receipt(told["manager"], Path(told["path"]), told["sha256"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReefError(f"{home.login} cannot be read: {error}", hint=f"rm {home.login}") from error


def _write(home: Home, receipt: Receipt) -> None:
    told = {"manager": receipt.manager, "path": str(receipt.path), "sha256": receipt.sha256}
    write_private(home.login, json.dumps(told).encode())


def _restore(path: Path, before: bytes | None) -> None:
    if before is None:
        path.unlink(missing_ok=True)
    else:
        write_private(path, before)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _environment(home: Home) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The packages lie beside the program where it was installed, else where this command found them.
    found = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {**passed, **found, "REEF_HOME": str(home.root)}


def _label(home: Home) -> str:
    """A name of its own for each home but the usual one."""
    if home.root == Path.home() / ".reef":
        return "reef"
    return f"reef-{_sha256(os.fsencode(home.root))[:8]}"


def _run(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReefError(f"{words[0]} cannot be run: {error}", hint="reef start works without it") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise ReefError(f"{' '.join(words)}: {said}", hint="reef start works without it")
    return done.stdout


class Systemd:
    name = "systemd"

    def file(self, home: Home) -> tuple[Path, bytes]:
        place = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        lines = [
            "# Written by `reef start --at-login`; `reef stop --at-login` removes it.",
            "[Unit]",
            "Description=Reef, between coding agents and their model",
            "[Service]",
            "Type=exec",
            f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in DAEMON)}",
            *(f"Environment={_quoted(f'{name}={value}')}" for name, value in _environment(home).items()),
            "WorkingDirectory=/",
            "Restart=on-failure",
            "RestartSec=1",
            # A configuration that cannot be used, and a daemon that runs already, stay so.
            f"RestartPreventExitStatus={ExitCode.USAGE:d} {ExitCode.STALE:d}",
            "UMask=0077",
            "NoNewPrivileges=yes",
            "KillMode=mixed",
            "TimeoutStopSec=45",
            "[Install]",
            "WantedBy=default.target",
        ]
        return place / "systemd" / "user" / f"{_label(home)}.service", ("\n".join(lines) + "\n").encode()

    def enable(self, path: Path) -> None:
        self._control("daemon-reload")
        self._control("enable", path.name)

    def start(self, path: Path) -> None:
        self._control("start", path.name)

    def disable(self, path: Path) -> None:
        self._control("disable", "--now", path.name)

    def note(self) -> str | None:
        """It ends with the last session, unless the user lingers."""
        try:
            lingers = _run("loginctl", "show-user", str(os.getuid()), "--property=Linger").strip() == "Linger=yes"
        except ReefError:
            lingers = False
        return None if lingers else "to run also while nobody is logged in: loginctl enable-linger"

    def _control(self, *words: str) -> None:
        _run("systemctl", "--user", *words)


def _quoted(text: str) -> str:
    """As systemd.syntax reads it back."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"'


class Launchd:
    name = "launchd"

    def file(self, home: Home) -> tuple[Path, bytes]:
        import plistlib

        label = f"org.reef.{_label(home)}"
        told: Mapping[str, object] = {
            "Label": label,
            "ProgramArguments": list(DAEMON),
            "EnvironmentVariables": _environment(home),
            "WorkingDirectory": "/",
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "Umask": 0o077,
            "ExitTimeOut": 45,
            "StandardErrorPath": str(home.log),
        }
        return Path.home() / "Library" / "LaunchAgents" / f"{label}.plist", plistlib.dumps(dict(told))

    def enable(self, path: Path) -> None:
        _run("launchctl", "enable", f"{self._domain()}/{path.stem}")

    def start(self, path: Path) -> None:
        """Loading it starts it; one that is loaded from before is taken out first."""
        with suppress(ReefError):  # it was not loaded
            _run("launchctl", "bootout", f"{self._domain()}/{path.stem}")
        _run("launchctl", "bootstrap", self._domain(), str(path))

    def disable(self, path: Path) -> None:
        try:
            _run("launchctl", "bootout", f"{self._domain()}/{path.stem}")
        except ReefError as error:
            if "No such process" not in error.message and "Could not find" not in error.message:
                raise

    def note(self) -> str | None:
        return None

    def _domain(self) -> str:
        return f"gui/{os.getuid()}"


_MANAGERS: Final[dict[str, Callable[[], Manager]]] = {"systemd": Systemd, "launchd": Launchd}
