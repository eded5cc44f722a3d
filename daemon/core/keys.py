"""Where a provider's key comes from: the system's keyring, a private file, or the environment.

A key is never in the configuration, on a command line, in a listing or in an error; what is told is where it should be.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

from daemon.core.errors import EngineError

FORMS: Final = "keyring:NAME, file:PATH or env:NAME"
_KINDS: Final = ("keyring", "file", "env")
#: A locked keyring asks the person first.
_KEYRING_SECONDS: Final = 30


def is_source(text: str) -> bool:
    """Whether ``engines.NAME.key`` may be this."""
    kind, _, where = text.partition(":")
    return text in ("agent", "none") or (kind in _KINDS and bool(where))


def read(source: str) -> str:
    """The key. Blocks for a keyring. Raises EngineError naming the place and what to do."""
    kind, _, where = source.partition(":")
    key = {"keyring": _from_keyring, "file": _from_file, "env": _from_environment}[kind](where).strip()
    if not key or not key.isprintable():
        raise _missing(f"{where} holds none", "reef config show")
    return key


def _from_environment(name: str) -> str:
    if name not in os.environ:
        raise _missing(f"{name} is not set", f"export {name}=…; then reef stop and reef start")
    return os.environ[name]


def _from_file(name: str) -> str:
    path = Path(name).expanduser()
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise _missing(f"{path} can be read by others, so it is not used", f"chmod 600 {path}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise _missing(f"{path} cannot be read", "reef config show") from None


def _from_keyring(name: str) -> str:
    look = ["secret-tool", "lookup", "service", "reef", "account", name]
    keep = f"secret-tool store --label 'Reef {name}' service reef account {name}"
    if sys.platform == "darwin":
        look = ["security", "find-generic-password", "-s", "reef", "-a", name, "-w"]
        keep = f"security add-generic-password -s reef -a {name} -w"
    try:
        done = subprocess.run(
            look, capture_output=True, text=True, timeout=_KEYRING_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise _missing(f"{look[0]} is not installed", f"install it (libsecret), or use {FORMS}") from None
    except subprocess.TimeoutExpired:
        raise _missing(f"the keyring did not answer in {_KEYRING_SECONDS} s", "unlock it") from None
    if done.returncode or not done.stdout.strip():
        raise _missing(f"the keyring holds none called {name!r}", keep)
    return done.stdout


def _missing(why: str, hint: str) -> EngineError:
    return EngineError(f"the provider's key is missing: {why}", hint=hint)
