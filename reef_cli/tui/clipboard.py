"""Copying through the terminal (OSC 52): over ssh, too, where no clipboard of this machine is of use.

No terminal says whether it took the text: "sent" is all that can be said. Where it is known that it cannot arrive, the
text goes into a file that is named.
"""

import base64
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from daemon.core.errors import ConfigError
from daemon.core.paths import Home, private_directory, write_private

#: xterm and tmux drop longer sequences; so much text it is before base64.
_LONGEST: Final = 74_994
_TMUX_SECONDS: Final = 2.0


def sequence(text: str, environ: Mapping[str, str]) -> str:
    """What sets the clipboard; inside tmux twice: for tmux itself, and wrapped for the terminal around it."""
    plain = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    if not environ.get("TMUX"):
        return plain
    escaped = plain.replace("\x1b", "\x1b\x1b")
    return f"{plain}\x1bPtmux;{escaped}\x1b\\"


def obstacle(text: str, environ: Mapping[str, str], option: Callable[[str], str]) -> str | None:
    """Why the terminal will not get it; None where it may. ``option`` reads one of tmux's."""
    if len(text.encode()) > _LONGEST:
        return f"terminals take {_LONGEST // 1000} kB at most"
    if environ.get("TERM") == "linux":
        return "this console has no clipboard"
    if environ.get("TERM_PROGRAM") == "Apple_Terminal":
        return "Terminal.app takes none"
    if environ.get("TMUX") and option("set-clipboard") != "on" and option("allow-passthrough") not in ("on", "all"):
        return "tmux lets none through: tmux set -g set-clipboard on"
    if environ.get("STY") and not environ.get("TMUX"):
        return "screen lets none through"
    return None


def tmux_option(name: str) -> str:
    """The value of one of tmux's global options; "" where it cannot be asked."""
    try:
        done = subprocess.run(
            ["tmux", "show-options", "-gwv" if name == "allow-passthrough" else "-gsv", name],
            capture_output=True, text=True, timeout=_TMUX_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def write(home: Home, text: str) -> str:
    """The text in the home's own file; its path. Raises ConfigError."""
    private_directory(home.root)
    try:
        write_private(home.copied, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write {home.copied}: {error}") from error
    return str(home.copied)
