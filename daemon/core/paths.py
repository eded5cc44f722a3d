"""Where everything lives. One environment variable, ``REEF_HOME``, moves all of it (default ``~/.reef``).

Directories are 0700, files 0600, owned by the person who runs Reef: prompts and keys pass through here. Nothing else
in the code builds a path of its own.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final, NamedTuple

from daemon.core.errors import ConfigError

#: Names the descriptor of `Home.start_lock` that a starting daemon holds until it serves.
START_LOCK: Final = "REEF_START_LOCK"
#: A Unix socket's path is at most 104 bytes on macOS (108 on Linux), the final zero included.
_SOCKET_LIMIT = 103


class Home(NamedTuple):  # not a dataclass: importing those is 20 ms of the hot commands' 60 (bench/startup.py)
    """A person's Reef: one directory, one daemon."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def dashboard(self) -> Path:
        """How the person wants the dashboard, see `reef_cli.tui.settings`."""
        return self.root / "tui.yaml"

    @property
    def copied(self) -> Path:
        """What was copied last in the dashboard where the terminal has no clipboard."""
        return self.root / "copied.txt"

    @property
    def database(self) -> Path:
        return self.root / "store" / "reef.db"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def agents(self) -> Path:
        """Private installs of coding agents, and their isolated configuration directories."""
        return self.root / "agents"

    @property
    def commands(self) -> Path:
        """What a person calls to run a wrapped agent: ``reef-pi``."""
        return self.root / "bin"

    @property
    def releases(self) -> Path:
        """The bare Git repository of all scenarios' release chains; large files are Git LFS objects inside."""
        return self.root / "releases.git"

    @property
    def jobs(self) -> Path:
        """A directory a job: what it selected, grew and measured, so that it can go on after kill -9."""
        return self.root / "jobs"

    @property
    def release_key(self) -> Path:
        """The Ed25519 key that signs releases, in OpenSSH's format; ``.pub`` beside it."""
        return self.root / "tokens" / "release"

    @property
    def releases_seen(self) -> Path:
        """The newest release of each scenario, kept apart from the repository: a chain that got shorter is noticed."""
        return self.root / "tokens" / "releases.json"

    @property
    def harness(self) -> Path:
        """Working copies of harnesses, a folder a scenario, for the person to edit; made when there is one."""
        return self.root / "harness"

    @property
    def scenarios(self) -> Path:
        """What a person chose for scenarios, see `daemon.store.scenarios`."""
        return self.root / "scenarios.json"

    @property
    def paused(self) -> Path:
        """There while nothing is to be recorded."""
        return self.root / "paused.json"

    @property
    def outbox(self) -> Path:
        """Feedback that waits for a daemon, a file an entry; made when there is some."""
        return self.root / "outbox"

    @property
    def login(self) -> Path:
        """What was written so that the daemon starts at login."""
        return self.root / "login.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def log(self) -> Path:
        return self.logs / "daemon.log"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def lock(self) -> Path:
        """Held by the daemon for as long as it lives."""
        return self.run / "daemon.lock"

    @property
    def start_lock(self) -> Path:
        """Held by whoever is starting a daemon."""
        return self.run / "start.lock"

    @property
    def state(self) -> Path:
        """Pid, port and version of the running daemon, see `daemon.core.discovery`."""
        return self.run / "daemon.json"

    @property
    def agent_token(self) -> Path:
        """Inference and feedback only; what agents get."""
        return self.root / "tokens" / "agent"

    @property
    def control_token(self) -> Path:
        """Everything, over TCP; a person's own CLI uses the socket instead."""
        return self.root / "tokens" / "control"

    @property
    def redaction_key(self) -> Path:
        """The HMAC key that keeps equal secrets equal after redaction."""
        return self.root / "tokens" / "redaction"

    @property
    def socket(self) -> Path:
        """The control socket; in a private temporary directory where the home's own path is too long for one."""
        path = self.run / "reef.sock"
        if len(os.fsencode(path)) <= _SOCKET_LIMIT:
            return path
        import hashlib  # not at import, nor tempfile: 16 ms of the hot commands' 60
        import tempfile

        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"reef-{os.getuid()}-{digest}" / "reef.sock"

    def prepare(self) -> None:
        """Make the directories, private. Raises ConfigError when one of them is someone else's or cannot be made."""
        places = (
            self.root, self.database.parent, self.models, self.agents, self.jobs, self.logs, self.run,
            self.agent_token.parent, self.socket.parent,
        )  # fmt: skip
        for place in places:
            private_directory(place)


def home() -> Home:
    """The home that ``REEF_HOME`` names, or ``~/.reef``."""
    named = os.environ.get("REEF_HOME")
    return Home(Path(named).expanduser().absolute() if named else Path.home() / ".reef")


def private_directory(path: Path) -> None:
    """Make ``path`` a directory of mode 0700 that this user owns."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise ConfigError(
            f"cannot make {path}: {error.strerror}", hint="set REEF_HOME to a directory you own"
        ) from error
    if status.st_uid != os.getuid():
        raise ConfigError(
            f"{path} belongs to user {status.st_uid}, not to you ({os.getuid()})",
            hint="set REEF_HOME to a directory you own",
        )
    if status.st_mode & 0o077:
        path.chmod(0o700)


class NotPlain(OSError):
    """Not a file of its own: a link leads elsewhere, a FIFO or a device is never read to its end."""


def open_plain(path: Path) -> BufferedReader:
    """Open a file that somebody else could have put there, for reading. Raises NotPlain, OSError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise NotPlain(error.errno, "it is no plain file", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotPlain(errno.EINVAL, "it is no plain file", str(path))
    return os.fdopen(handle, "rb")


def sha256_of(path: Path) -> str:
    """A file's sha256 in hex, read block by block. Raises OSError."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """A file is only there after a power cut once its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_private(path: Path, data: bytes) -> None:
    """Replace ``path`` atomically with ``data``, mode 0600, durable before this returns."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
