"""A terminal for programs that draw on one: tmux, with a server of its own."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Terminal:
    """A tmux of its own with one window, in which the wrapper runs."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def start(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        given = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
        self("new-session", "-d", "-x", "150", "-y", "45", *given, "-c", str(folder), *command)

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False, timeout=120)
        return done.stdout

    def screen(self) -> str:
        return self("capture-pane", "-p", "-J")

    def see(self, text: str, seconds: float = 180) -> str:
        """Wait until the text is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in (shown := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} is not on the screen:\n{shown}"
            time.sleep(0.1)
        return shown

    def type(self, text: str) -> None:
        self("send-keys", "-l", text)
        self("send-keys", "Enter")

    def enter(self, text: str, answered: Callable[[], Any]) -> Any:
        """Type a line and wait until it is answered; Enter again where the first one only ended a paste."""
        self("send-keys", "-l", text)
        self.see(text)
        deadline = time.monotonic() + 120
        while True:
            self("send-keys", "Enter")
            again = time.monotonic() + 5
            while time.monotonic() < again:
                if found := answered():
                    return found
                time.sleep(0.1)
            assert time.monotonic() < deadline, f"{text!r} was not answered:\n{self.screen()}"

    def ended(self) -> bool:
        return "0" not in self("list-sessions", "-F", "0")
